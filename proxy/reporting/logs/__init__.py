"""Log lines: setup, aggregation, and the thread that writes them."""
