"""The handler of Produce requests, the effects that it yields, and the code that performs these effects."""
