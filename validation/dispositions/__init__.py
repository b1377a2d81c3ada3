"""Fixes and marks bad records, or copies them to a dead-letter topic."""
