"""The identity of a client, from its login, its certificate, and the text that it sends about itself."""
