"""The reference page and the JSON Schema, generated from the model."""
