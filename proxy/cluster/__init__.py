"""The proxy's own requests to the cluster: its brokers and topic settings."""
