"""The client of schema registries, which runs in threads of its own."""
