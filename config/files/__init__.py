"""Reads configuration files: regular files only, with a deadline, and YAML with line numbers."""
