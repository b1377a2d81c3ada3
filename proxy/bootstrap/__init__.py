"""`sluicegate bootstrap`: asks a cluster, reading only, and writes a first configuration for it."""
