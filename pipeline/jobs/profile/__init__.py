"""Counts the records of a topic and classifies their timestamps while reading it."""
