"""Everything with a socket, a clock or a thread: the proxy itself."""
