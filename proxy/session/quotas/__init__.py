"""Quotas of clients and topics, and how sessions follow them."""
