"""The proxy's own requests to the cluster, which discover brokers and read topic settings."""
