"""Merges, rewrites and creates responses to clients."""
