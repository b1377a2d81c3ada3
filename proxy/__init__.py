"""The proxy itself, with all code that uses a socket, a clock or a thread."""
