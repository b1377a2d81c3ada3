"""`sluicegate doctor`, which checks everything that a configuration depends on, and changes nothing."""
