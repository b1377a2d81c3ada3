"""What the proxy asks schema registries, in threads of its own."""
