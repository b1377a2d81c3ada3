"""Several worker processes as one proxy: their supervisor, and the messages between them."""
