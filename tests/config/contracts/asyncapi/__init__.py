"""Tests of AsyncAPI documents as contracts."""
