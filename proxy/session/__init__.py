"""One client's connection and its broker's: whose turn it is, what is in flight, what is held."""
