"""Compares the files in deploy/ with the proxy's metrics and with Prometheus itself."""
