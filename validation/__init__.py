"""Policies, rules and the validation of Produce requests. No I/O, no clock."""
