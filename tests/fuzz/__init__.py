"""Mutated requests and batches, sent to a running proxy and passed directly to the compiled code (`make fuzz`)."""
