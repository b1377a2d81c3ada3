"""The start of a session, with the admission of clients and the detection of a proxy that connects to itself."""
