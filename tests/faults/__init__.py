"""All that can go wrong around the proxy, drawn by a seed, under load: what was acknowledged is there, nothing is left.

`make faults RUNS=200 SEED=1` writes the table of docs/reliability.md.
"""
