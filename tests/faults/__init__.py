"""Faults around the proxy, drawn by a seed, under load: acknowledged records are stored and no resource leaks.

`make faults RUNS=200 SEED=1` writes the table of bench/results/reliability.md.
"""
