"""One client connection and its broker connection: the order of requests, pauses, memory and closing."""
