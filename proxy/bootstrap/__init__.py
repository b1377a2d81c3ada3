"""`sluicegate bootstrap`: reads a cluster and writes a first configuration for it."""
