"""The proxy's state, and the conditions that explain it."""
