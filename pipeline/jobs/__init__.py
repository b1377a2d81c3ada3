"""Contains the jobs of `sluicegate-spark`, one package for each job."""
