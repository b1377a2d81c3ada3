"""The proxy's own requests to the cluster, for its brokers and for topic settings."""
