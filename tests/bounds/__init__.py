"""The cost that one client, broker or operator may cause for the others is limited. Each case is a hostile input.

No input of up to max_frame_bytes delays an honest client by more than 100 ms. Resident memory grows by at most 4 times
the buffered bytes plus 64 MiB, and returns to its initial size after the senders have left. Every wait has a deadline,
and every close completes. `make bounds` runs every case at its full size and writes bounds.json and reliability.md in
bench/results.
"""
