"""The commands of `sluicegate` and their console output."""
