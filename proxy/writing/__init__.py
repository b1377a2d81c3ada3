"""What the proxy itself writes to the cluster: violation events, and records that are quarantined."""
