"""Sensitive fields: values that are masked, hashed or rejected before a batch is stored."""
