"""Provides independent references for our code: Kafka's own Java classes and its message definitions."""
