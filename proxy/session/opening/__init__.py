"""The start of a session: admission, and the connection to a broker."""
