"""A client's identity, from its login, its certificate, and what it reports about itself."""
