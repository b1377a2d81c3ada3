"""What one client, broker or operator may cost the others: each line a hostile input, measured against the law.

"No input of up to max_frame_bytes keeps an honest client waiting longer than 100 ms; resident memory grows by at most 4
times the bytes held plus 64 MiB, and by nothing once the senders have left; every wait has a deadline and every close
ends." `make bounds` runs every line at its full size and writes the table of docs/reliability.md.
"""
