"""Log lines, with their setup and aggregation and the thread that writes them."""
