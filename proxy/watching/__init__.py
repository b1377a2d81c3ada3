"""Shows running proxies in a terminal (`sluicegate top` and `sluicegate who`)."""
