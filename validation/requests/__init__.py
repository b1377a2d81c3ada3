"""Rules for requests and clients, quotas and exemptions."""
