"""The jobs of `sluicegate-spark`, a package each."""
