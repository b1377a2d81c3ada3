"""`sluicegate demo`: an embedded cluster, a proxy in front of it, and clients that send good and bad records."""
