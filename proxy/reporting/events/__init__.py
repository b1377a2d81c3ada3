"""Violation events and their destinations."""
