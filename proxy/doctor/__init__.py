"""`sluicegate doctor`, which checks everything on which a configuration depends and changes nothing."""
