"""What is generated from the model: the reference page and the JSON Schema."""
