"""Applies JSON and JSON Schema rules, and bounds their cost."""
