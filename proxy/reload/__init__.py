"""Watches, loads and checks the configuration while the proxy runs, and compiles its policies."""
