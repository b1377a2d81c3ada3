"""Decides whether a request is validated on the event loop or in a thread."""
