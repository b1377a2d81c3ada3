"""The native checks of rules, for the fast path."""
