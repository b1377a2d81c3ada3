"""What the records of a batch hold, one after the other: only those parts of them that somebody wants to see.

Of magic 2, whose records were scanned before and follow the format (`sluicegate.protocol.records.scan` says whether
they do). Reads strictly forward, and so over the ends of the pieces that a payload is decompressed in: what is held is
a piece and one record's wanted parts.

Compiled with the types in contents.pxd where a C compiler was at hand.
"""

from sluicegate.protocol.int64 import ALL_64, SIGN_64
from sluicegate.protocol.records.codecs.codec import Piece
from sluicegate.protocol.records.codecs.decompression import Pieces
from sluicegate.protocol.records.codecs.decompression_budget import Allowance, Bound, OverLimit
from sluicegate.protocol.records.scan import Cursor

MOST_HEADERS = 10_000
"""Of one record that are taken out; of what has more, `header_count` tells."""

_MOST_HEADERS = MOST_HEADERS
_SIGN_64 = SIGN_64
_U64 = ALL_64
_RECORD_WORK = 128
_HEADER_WORK = 64
_WHOLE = 1 << 31  # no part of a record is larger
_NO_HEADERS: tuple[tuple[bytes, bytes | None], ...] = ()


class Wanted:
    """Which parts of records are taken out, and how large one may be (bytes) that runs over the end of a piece.

    `most_bytes`: of longer ones only the beginning is taken.
    """

    def __init__(self, key: bool, value: bool, headers: bool, window_bytes: int, most_bytes: int = _WHOLE) -> None:
        self.most_bytes = most_bytes
        self.key = key
        self.value = value
        self.headers = headers
        self.window_bytes = window_bytes


class RecordContents:
    """Walks over the records; its attributes are about the current one, sizes -1 for null.

    `timestamp`: int64 ms. `key`, `value` and `headers` are there where they are wanted. `data` is a plain payload from
    `start` to `end`, or the first of `pieces`.
    """

    def __init__(
        self,
        data: Piece,
        start: int,
        end: int,
        pieces: Pieces | None,
        count: int,
        base_timestamp: int,
        wanted: Wanted,
        allowance: Allowance,
    ) -> None:
        self._cursor = Cursor(data, start, end, pieces, allowance)
        self._left = count
        self._base = base_timestamp & _U64
        self._wants_key = wanted.key
        self._wants_value = wanted.value
        self._wants_headers = wanted.headers
        self._window_bytes = wanted.window_bytes
        self._most_bytes = wanted.most_bytes
        self._allowance = allowance
        self.index = -1
        self.timestamp = 0
        self.key: bytes | None = None
        self.value: bytes | None = None
        self.headers = _NO_HEADERS
        self.key_size = -1
        self.value_size = -1
        self.header_count = 0

    def skip_to(self, index: int) -> None:
        """Goes to before the record at `index`, and takes nothing out of those before it."""
        wants_key, wants_value, wants_headers = self._wants_key, self._wants_value, self._wants_headers
        self._wants_key = self._wants_value = self._wants_headers = False
        while self.index < index - 1 and self.read_next():
            pass
        self._wants_key, self._wants_value, self._wants_headers = wants_key, wants_value, wants_headers

    def read_next(self) -> bool:
        """Whether there is another. Raises OverLimit, and what `allowance` raises to give way or for lack of time."""
        if self._left <= 0:
            return False
        cursor = self._cursor
        self._left -= 1
        self.index += 1
        cursor.varint()  # its length, which a broker ignores where records are compressed
        cursor.skip(1)  # attributes, of which none is in use
        self.timestamp = _signed((self._base + cursor.varlong()) & _U64)
        cursor.varint()  # the offset delta
        size = cursor.varint()
        self.key_size = size if size >= 0 else -1
        if self._wants_key:
            self.key = self._taken(size)
        else:
            cursor.skip(size)
        size = cursor.varint()
        self.value_size = size if size >= 0 else -1
        if self._wants_value:
            self.value = self._taken(size)
        else:
            cursor.skip(size)
        self.header_count = cursor.varint()
        if self.header_count > 0:
            self._read_headers()
        elif self._wants_headers:
            self.headers = _NO_HEADERS
        if cursor.failed:
            raise RuntimeError("records that followed the format do so no longer")
        work = _RECORD_WORK + (self.key_size if self.key_size > 0 else 0)
        self._allowance.worked(work + (self.value_size if self.value_size > 0 else 0))
        return True

    def _read_headers(self) -> None:
        cursor = self._cursor
        left = self.header_count
        found: list[tuple[bytes, bytes | None]] = []
        while left > 0 and not cursor.failed:
            if self._wants_headers and len(found) < _MOST_HEADERS:
                name = self._taken(cursor.varint()) or b""  # of what was scanned, none is null
                found.append((name, self._taken(cursor.varint())))
            else:
                cursor.skip(cursor.varint())
                cursor.skip(cursor.varint())
            self._allowance.worked(_HEADER_WORK)
            left -= 1
        if self._wants_headers:
            self.headers = tuple(found)

    def _taken(self, size: int) -> bytes | None:
        """The next `size` bytes, or as many of them as are wanted; None where that is null."""
        if size < 0:
            return None
        wanted = size if size < self._most_bytes else self._most_bytes
        self._allowance.check_at_once(wanted)
        cursor = self._cursor
        at = cursor.position
        if size <= cursor.end - at:
            cursor.position = at + size
            return bytes(cursor.source[at : at + wanted])
        found = self._gathered(wanted)
        cursor.skip(size - wanted)
        return found

    def _gathered(self, size: int) -> bytes:
        """The same, of what runs over the end of a piece."""
        if size > self._window_bytes:
            raise OverLimit(Bound.WINDOW, self._window_bytes)
        cursor = self._cursor
        found = bytearray()
        while True:
            here = min(size - len(found), cursor.end - cursor.position)
            found += cursor.source[cursor.position : cursor.position + here]
            cursor.position += here
            if len(found) == size:
                return bytes(found)
            if not cursor.refill():
                cursor.failed = True
                return b""


def _signed(pattern: int) -> int:
    """The int64 that a pattern of 64 bits stands for."""
    return (pattern ^ _SIGN_64) - _SIGN_64
