"""What a topic holds: counts, sizes, times and what is wrong with them, added up while it is read."""
