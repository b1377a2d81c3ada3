"""Runs a job, except for the parts about Kafka: its arguments, folder, results, tables, errors and interruption."""
