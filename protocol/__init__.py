"""Kafka's wire protocol: bytes in, values out. No sockets, no clock, no policy."""
