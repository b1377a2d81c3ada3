"""Applies rules about Avro data, and bounds their cost."""
