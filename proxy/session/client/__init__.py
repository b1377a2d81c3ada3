"""The identity of a client: login, certificate, and text that it sends about itself."""
