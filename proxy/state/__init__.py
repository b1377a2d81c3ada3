"""What the proxies of one cluster agree on: changes in a compacted topic, applied by every proxy in their order."""
