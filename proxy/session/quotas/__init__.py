"""Clients' and topics' quotas, and their effect on sessions."""
