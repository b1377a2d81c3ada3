"""How much one client, broker or operator may cost the others: each case is a hostile input, measured against limits.

No input of up to max_frame_bytes keeps an honest client waiting longer than 100 ms. Resident memory grows by at most 4
times the buffered bytes plus 64 MiB, and returns to its start after the senders have left. Every wait has a
deadline and every close ends. `make bounds` runs every case at its full size and writes bounds.json and
reliability.md in bench/results.
"""
