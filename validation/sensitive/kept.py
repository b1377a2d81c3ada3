"""Counts the cached parts of all schemas that records name, so that their memory can be bounded."""


class KeptParts:
    """The cached parts. `size` is the number of fields, properties and parts, which have up to 200 bytes each."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0
