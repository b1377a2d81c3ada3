"""Copies a polluted topic to a clean one: the same records in the same order, with corrected timestamps."""
