"""`sluicegate doctor`: looks at all that a proxy with a given configuration would depend on, and changes nothing."""
