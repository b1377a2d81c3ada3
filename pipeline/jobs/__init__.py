"""The jobs of `sluicegate-spark`, a folder each."""
