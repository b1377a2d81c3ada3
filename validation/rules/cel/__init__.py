"""CEL expressions as rules, and bounds of their cost."""
