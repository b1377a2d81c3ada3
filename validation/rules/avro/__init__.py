"""Avro rules, and bounds of their cost."""
