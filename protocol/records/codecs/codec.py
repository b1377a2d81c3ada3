"""Compression codecs as the low three bits of a batch's attributes name them, and how a payload may fail."""

from enum import Enum, IntEnum


class Codec(IntEnum):
    """Codec ids on the wire; 5 to 7 name nothing."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


Piece = bytes | memoryview
"""Some of a payload's plain bytes."""


class Failure(Enum):
    """Why a payload did not come out whole."""

    DAMAGED = "the payload is damaged"
    OVER_LIMIT = "the payload is larger than allowed"


class Oddity(Enum):
    """What a broker ignores in a payload and consumers do not."""

    HIDDEN_DATA = "data that brokers skip and some clients read"
    TRAILING_BYTES = "bytes after the end of the compressed data"
    UNVERIFIED = "a form or checksum that brokers do not verify"


class Damaged(Exception):
    """The payload does not go on as it should."""


class Odd(Exception):
    """A broker reads no further, or has ignored something, and regards the payload as whole."""

    def __init__(self, oddity: Oddity) -> None:
        super().__init__(oddity.value)
        self.oddity = oddity


# What is kept between batches: most batches stay below this, and a process has a few such buffers.
_KEPT_BYTES = 4 << 20


class PlainBuffer:
    """Room for plain bytes, until the next that asks for room overwrites them."""

    def __init__(self) -> None:
        self._view = memoryview(bytearray())

    def room(self, size: int, filled: int = 0) -> memoryview:
        """At least `size` bytes to write to; the first `filled` stay as they are when room has to be made."""
        if len(self._view) < size:
            larger = bytearray(max(size, 2 * filled))
            larger[:filled] = self._view[:filled]
            self._view = memoryview(larger)
        return self._view

    def give_back(self) -> None:
        """Keep no more than between batches is reasonable."""
        if len(self._view) > _KEPT_BYTES:
            self._view = memoryview(bytearray())
