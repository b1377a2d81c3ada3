"""What is known of a client: identity, login, and text that it names itself."""
