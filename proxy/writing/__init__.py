"""Writes the proxy's own records to the cluster: violation events and quarantined records."""
