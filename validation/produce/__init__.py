"""Validation of a whole Produce request, with what its policies do to batches."""
