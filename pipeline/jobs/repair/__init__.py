"""Copies a polluted topic to a clean topic: the same records in the same order, with corrected timestamps."""
