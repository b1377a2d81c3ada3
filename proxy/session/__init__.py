"""One client connection and its broker connection, with the order of requests, pauses, memory and closing."""
