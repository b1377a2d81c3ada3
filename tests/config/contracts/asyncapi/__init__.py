"""Tests AsyncAPI documents as contracts."""
