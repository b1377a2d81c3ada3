"""Validates whole Produce requests, and applies their policies' dispositions to batches."""
