"""Applies schemas from files and registries as rules."""
