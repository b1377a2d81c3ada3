"""Everything at once, for long: is anything lost, and does anything grow?"""
