"""Defines the configuration file: its keys, how it is read, and errors that name the key and the line."""
