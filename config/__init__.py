"""The configuration: what a file may say, how it is read, and errors that name the key and the line."""
