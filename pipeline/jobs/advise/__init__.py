"""Which limits a topic could have, by what it holds."""
