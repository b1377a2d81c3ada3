"""The configuration while the proxy runs: watches its files, loads and checks them, and compiles their policies."""
