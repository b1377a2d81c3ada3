"""Hostile inputs for whatever reads or rewrites contents: masks, marks, fixes, copies, rules and headers."""
