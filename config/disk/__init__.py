"""Files of a file system that may hang: regular ones only, read within a deadline."""
