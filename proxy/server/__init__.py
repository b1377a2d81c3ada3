"""Assembly and lifecycle of one running proxy."""
