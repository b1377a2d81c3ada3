"""`sluicegate bootstrap`, which reads a cluster and writes a first configuration for it."""
