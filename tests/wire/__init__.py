"""Builds and parses batches and requests for tests, correct or deliberately wrong."""
