"""Generates the reference page and the JSON Schema from the model."""
