"""A separate process for rules of unknown cost, which can be stopped."""
