"""Schemas from files and registries as rules."""
