"""The proxy. All code that uses sockets, clocks or threads is here."""
