"""Rules about requests and clients, quotas and exemptions."""
