"""The client for schema registries, which runs in its own threads."""
