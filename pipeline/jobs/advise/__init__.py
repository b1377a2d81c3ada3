"""Recommends timestamp limits for topics."""
