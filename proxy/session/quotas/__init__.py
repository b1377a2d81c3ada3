"""Quotas of clients and topics, and how a session is held to them."""
