"""The page at the admin address: what it is made of, who may see it, and the streams of live figures."""
