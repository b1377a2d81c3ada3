"""Evaluates CEL expressions as rules, and bounds their cost."""
