"""Compares two topics record by record, ignoring declared repairs."""
