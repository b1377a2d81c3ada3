"""Validates stored records with the proxy's policies."""
