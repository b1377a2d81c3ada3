"""Where requests are judged: on the event loop or in a thread."""
