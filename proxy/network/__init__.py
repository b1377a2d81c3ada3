"""Sockets, listeners, connections and TLS."""
