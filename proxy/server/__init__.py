"""Assembles one running proxy, and manages its lifecycle."""
