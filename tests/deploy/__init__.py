"""What stands in deploy/, held against what the proxy shows and against Prometheus itself."""
