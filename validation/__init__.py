"""Policies, rules and the validation of Produce requests, without I/O and without a clock."""
