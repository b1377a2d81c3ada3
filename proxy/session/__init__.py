"""One client connection and its broker connection: order of requests, pauses, memory and ends."""
