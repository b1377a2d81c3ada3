"""The quotas of clients and topics, and their effect on sessions."""
