"""Writes records exactly once, for the jobs that write: `repair` and `replay`."""
