"""The start of a session: admission, and the detection of a proxy that connects to itself."""
