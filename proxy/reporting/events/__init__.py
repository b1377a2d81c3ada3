"""Violation events and where they are written."""
