"""The Spark data source `sluicegate`: topics as they lie on the broker, timestamps as int64."""
