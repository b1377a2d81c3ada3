"""Counts a topic's records and classifies their timestamps while reading them."""
