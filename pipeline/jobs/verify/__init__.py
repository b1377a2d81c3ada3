"""Whether two topics hold the same records but for repairs that are declared."""
