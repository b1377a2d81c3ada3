"""Reads and writes topics directly: record batches as brokers store them, parsed by the project's protocol code."""
