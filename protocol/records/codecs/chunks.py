"""A payload's plain bytes piece by piece, in the order in which a broker's decoder hands them out.

What is held at once is one piece: a few hundred KiB, or a block where a codec only knows whole blocks.
"""

from collections.abc import Iterator
from enum import Enum

from sluicegate.protocol.records.codecs.decompression_budget import Allowance, Bound, OverLimit

Piece = bytes | memoryview
# What a block, chunk, frame or member counts at least: that is what opening an empty one costs.
_LEAST_BYTES = 2048


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


class Bounds:
    """What one payload may become (`plain_bytes`) and make us hold at once (`window_bytes`), within an allowance."""

    def __init__(self, plain_bytes: int, window_bytes: int, allowance: Allowance) -> None:
        self.plain_bytes = plain_bytes
        self.window_bytes = window_bytes
        self.allowance = allowance
        self._left = plain_bytes

    def check_block(self, size: int) -> None:
        """A block states its size before room is made for it. Raises OverLimit."""
        if size > self.window_bytes:
            raise OverLimit(Bound.WINDOW, self.window_bytes)
        self._check(size)
        self.allowance.check(size)

    def spend(self, size: int) -> None:
        """A piece of `size` bytes has come out. Raises OverLimit, and Abandoned."""
        self._check(size)
        self._left -= size
        self.allowance.spend(size if size > _LEAST_BYTES else _LEAST_BYTES)

    def _check(self, size: int) -> None:
        if size > self._left:
            raise OverLimit(Bound.RATIO, self.plain_bytes)


class Pieces:
    """What a codec's decoder yields, counted and cut to at most `most` bytes.

    `failure` is set once `more` has said None: None there too means that the payload came out whole. So is `oddity`:
    what a broker ignores in a payload that came out whole.
    """

    def __init__(self, decoder: Iterator[Piece], bounds: Bounds, most: int) -> None:
        self.failure: Failure | None = None
        self.oddity: Oddity | None = None
        self._decoder = decoder
        self._bounds = bounds
        self._most = most
        self._rest: Piece | None = None

    def more(self) -> Piece | None:
        """The next piece, never empty, valid until the one after it; None behind the last.

        Raises OverLimit, and Abandoned.
        """
        piece = self._rest if self._rest is not None else self._decoded()
        self._rest = None
        if piece is not None and len(piece) > self._most:
            view = memoryview(piece)
            self._rest = view[self._most :]
            return view[: self._most]
        return piece

    def _decoded(self) -> Piece | None:
        self._bounds.allowance.check_open()
        try:
            for piece in self._decoder:
                self._bounds.spend(len(piece))
                if len(piece):
                    return piece
        except Damaged:
            self.failure = Failure.DAMAGED
        except Odd as odd:
            self.oddity = odd.oddity
        return None
