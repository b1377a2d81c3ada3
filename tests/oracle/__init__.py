"""Independent implementations that our code is held to: Kafka's own Java classes and its message definitions."""
