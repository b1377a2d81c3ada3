"""JSON and JSON Schema rules, and bounds of their cost."""
