"""Validates whole Produce requests, and applies the dispositions of their policies to batches."""
