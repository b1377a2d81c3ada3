"""The start of a session: admission of clients, and detection of a proxy that connects to itself."""
