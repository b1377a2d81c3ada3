"""For who looks at running proxies from a terminal: `sluicegate top` and `sluicegate who`."""
