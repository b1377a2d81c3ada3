"""Aggregates the proxy's violation events as a stream: rejected records by client, time and reason."""
