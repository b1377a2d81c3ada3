"""Implements the Spark data source `sluicegate`, which reads topics as stored, with timestamps as int64."""
