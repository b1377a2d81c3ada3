"""Counts what a topic holds and classifies its timestamps while reading it."""
