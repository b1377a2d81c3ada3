"""Runs a job, apart from Kafka: its arguments, folder, results, tables, errors and interruption."""
