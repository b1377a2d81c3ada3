"""Defines hostile inputs for each mechanism that reads or rewrites contents: masks, marks, fixes, copies, rules and
headers."""
