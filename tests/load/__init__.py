"""Measures load: the CPU time, memory and descriptors that many or unusual clients cost, and the wait of a small
client.

A short form runs in `make test-long`. `make load` runs each situation at its full size and writes
bench/results/reliability.md.
"""
