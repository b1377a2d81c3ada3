"""The state of the proxy, and the conditions that explain it."""
