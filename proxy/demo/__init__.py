"""`sluicegate demo`, with an embedded cluster, a proxy in front of it, and a client that sends good and bad records."""
