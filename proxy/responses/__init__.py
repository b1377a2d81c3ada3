"""Merged, rewritten and synthesized responses."""
