"""Applies Avro rules, and bounds their cost."""
