"""The handler of Produce requests, what it yields, and what does that."""
