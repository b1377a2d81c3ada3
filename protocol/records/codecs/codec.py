"""Defines what all decoders share: codec ids, the kinds of failures, and the buffer into which they decompress."""

from enum import Enum, IntEnum


class Codec(IntEnum):
    """A codec id: the low three bits of a batch's attributes. 5 to 7 are unused."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


Piece = bytes | memoryview
"""Part of a payload, uncompressed."""


class Failure(Enum):
    """Why a payload was not decompressed completely."""

    DAMAGED = "the payload is damaged"
    OVER_LIMIT = "the payload is larger than allowed"


class Oddity(Enum):
    """A part of a payload that brokers ignore but some consumers do not."""

    HIDDEN_DATA = "data that brokers skip and some clients read"
    TRAILING_BYTES = "bytes after the end of the compressed data"
    UNVERIFIED = "a form or checksum that brokers do not verify"


class DamagedPayload(Exception):
    """Raised when decompression reaches a damaged position in the payload."""


class OddPayload(Exception):
    """Raised if a broker accepts the payload, but stops before its end or ignores something in it."""

    def __init__(self, oddity: Oddity) -> None:
        super().__init__(oddity.value)
        self.oddity = oddity


# The maximum size to keep between batches. Most batches need less, and a process has only a few such buffers.
_KEPT_BYTES = 4 << 20


class PlainBuffer:
    """A buffer for uncompressed bytes. It is reused from batch to batch, and freed if it has grown large."""

    def __init__(self) -> None:
        self._view = memoryview(bytearray())

    def grow_to(self, size: int, filled: int = 0) -> memoryview:
        """Return a buffer of at least `size` bytes that keeps its first `filled` bytes.

        The next call overwrites it.
        """
        if len(self._view) < size:
            larger = bytearray(max(size, 2 * filled))
            larger[:filled] = self._view[:filled]
            self._view = memoryview(larger)
        return self._view

    def shrink(self) -> None:
        """Free a buffer that is too large to keep between batches."""
        if len(self._view) > _KEPT_BYTES:
            self._view = memoryview(bytearray())
