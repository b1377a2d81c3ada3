"""Reads regular files within a deadline, because a file system may hang."""
