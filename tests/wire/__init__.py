"""Batches and requests that tests send and read, correct or deliberately wrong."""
