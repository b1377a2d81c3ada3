"""Several worker processes as one proxy: supervisor, workers, messages between them."""
