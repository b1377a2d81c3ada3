"""Mutated requests and batches: over sockets to a running proxy, and straight into the compiled code (`make fuzz`)."""
