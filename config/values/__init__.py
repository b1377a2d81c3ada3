"""The kinds of values in the configuration: parsing, bounds and error messages."""
