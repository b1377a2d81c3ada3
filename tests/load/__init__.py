"""Load: what many clients, or odd ones, cost in processor time, memory and descriptors, and what a small client waits
for meanwhile. A short form runs in `make test`; `make load` runs each at its full size and writes docs/reliability.md.
"""
