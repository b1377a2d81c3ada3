"""Several worker processes as one proxy, with their supervisor and the messages between them."""
