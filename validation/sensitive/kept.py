"""Counts the cached parts of all schemas that records name, to bound their memory."""


class KeptParts:
    """A count of cached parts. `size` is the number of fields, properties and parts, each of up to 200 bytes."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0
