"""Runs a job as a command, with its options and its Spark session, and reports each error in one line."""
