"""Policies, rules, and the validation of Produce requests. Does no I/O and reads no clock."""
