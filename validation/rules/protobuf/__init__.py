"""Applies Protobuf rules, and bounds their cost."""
