"""Tests mutated requests and batches, sent to a running proxy and passed to the compiled code (`make fuzz`)."""
