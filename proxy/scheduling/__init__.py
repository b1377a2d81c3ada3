"""Decides where requests are validated: on the event loop or in a thread."""
