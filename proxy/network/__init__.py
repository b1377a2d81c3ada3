"""Sockets: listeners, connections, TLS, and turns of the event loop."""
