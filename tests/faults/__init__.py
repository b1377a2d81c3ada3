"""Under load and with random faults around the proxy, acknowledged records are stored, and no resource leaks.

`make faults RUNS=200 SEED=1` writes the table in bench/results/reliability.md.
"""
