"""Log lines: their setup, their aggregation, and the thread that writes them."""
