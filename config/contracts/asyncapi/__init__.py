"""Reads AsyncAPI documents (2.x and 3.x) as contracts for Kafka topics."""
