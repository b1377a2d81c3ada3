"""Validates stored records by the proxy's policies."""
