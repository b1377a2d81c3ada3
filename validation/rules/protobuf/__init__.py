"""Protobuf rules, and bounds of their cost."""
