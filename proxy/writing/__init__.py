"""Writes the proxy's own records to the cluster, which are violation events and quarantined records."""
