"""What the proxy sees now, kept in bounds, for whoever looks: the page and `sluicegate top`."""
