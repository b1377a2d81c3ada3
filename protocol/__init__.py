"""Kafka's wire protocol: parses bytes into values. Uses no sockets and no clock, and applies no policy."""
