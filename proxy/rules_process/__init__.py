"""Applies rules whose cost is not known to be small in a process that can be stopped."""
