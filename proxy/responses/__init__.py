"""Merged, rewritten and synthesised responses."""
