"""The handler of Produce requests, its effects, and the code that performs them."""
