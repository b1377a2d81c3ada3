"""`sluicegate bootstrap`, which surveys a cluster and writes a first configuration for it."""
