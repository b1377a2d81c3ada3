"""The Spark data source `sluicegate`: topics as stored, with timestamps as int64."""
