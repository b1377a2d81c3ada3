"""Counts what is kept of schemas that records name, so that it can be bounded over all of them."""


class Kept:
    """What is kept. `size`: fields, properties and parts of schemas, of up to some 200 bytes each."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0
