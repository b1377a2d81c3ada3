"""Topic settings of sluicegate (`sluicegate.*`) in requests that create, alter, delete or describe topics."""
