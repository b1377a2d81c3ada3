"""Extracts the contents of records: selected parts of one record at a time, or some whole records.

It requires batches of magic 2 whose records were scanned before (`sluicegate.protocol.records.scan`) and follow the
format. It only reads forward, across the pieces of a decompressed payload. In memory are one piece, and the selected
parts of one record (`RecordContents`) or the extracted records (`take_records`).

Compiled with the types in contents.pxd if a C compiler is installed.
"""

from collections.abc import Callable
from typing import Any

from sluicegate.protocol.integers import ALL_64, SIGN_64
from sluicegate.protocol.records.codecs.codec import Piece
from sluicegate.protocol.records.codecs.decompression import DecompressedStream
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit, PayloadLimit
from sluicegate.protocol.records.scan import Cursor

MOST_HEADERS = 10_000
"""The maximum number of headers that are extracted per record. `header_count` is the true number."""

_MOST_HEADERS = MOST_HEADERS
_SIGN_64 = SIGN_64
_U64 = ALL_64
_RECORD_WORK = 128
_HEADER_WORK = 64
_TAKEN_HEADER_WORK = 192
_WHOLE = 1 << 31  # no part of a record is larger
# The memory of a kept record, and of each header, in addition to their bytes, both here and in the queue for writing.
RECORD_BYTES = 2048
HEADER_BYTES = 256

Header = tuple[bytes, bytes | None]
_NO_HEADERS: tuple[Header, ...] = ()
WhyTaken = Callable[[int, int, int], Any]
"""Maps a record's index in the batch, timestamp (ms) and key size (negative: null) to the reason for taking it.

It returns None if the record is not taken.
"""


class WantedParts:
    """The parts of records to extract.

    `window_bytes` is the size of the largest part that may span several pieces. If a part is longer than `most_bytes`,
    only its beginning is extracted. `header_names` contains the names of the headers to extract; None means all.
    """

    def __init__(
        self,
        key: bool,
        value: bool,
        headers: bool,
        window_bytes: int,
        most_bytes: int = _WHOLE,
        header_names: frozenset[bytes] | None = None,
    ) -> None:
        self.header_names = header_names
        self.most_bytes = most_bytes
        self.key = key
        self.value = value
        self.headers = headers
        self.window_bytes = window_bytes


class RecordContents:
    """A walk over the records. Its attributes are those of the current record; a size of -1 means null.

    `timestamp` is in int64 ms. `key`, `value` and `headers` are set if they are selected. `header_count` and
    `header_bytes` (names and values) count all headers. `data` is an uncompressed payload from `start` to `end`, or the
    first of `pieces`.
    """

    def __init__(
        self,
        data: Piece,
        start: int,
        end: int,
        pieces: DecompressedStream | None,
        count: int,
        base_timestamp: int,
        wanted: WantedParts,
        budget: DecompressionBudget,
    ) -> None:
        self._cursor = Cursor(data, start, end, pieces, budget)
        self._left = count
        self._base = base_timestamp & _U64
        self._wants_key = wanted.key
        self._wants_value = wanted.value
        self._wants_headers = wanted.headers
        self._header_names = wanted.header_names
        names = wanted.header_names
        self._longest_name = _WHOLE if names is None else max(map(len, names), default=-1)
        self._window_bytes = wanted.window_bytes
        self._most_bytes = wanted.most_bytes
        self._budget = budget
        self.index = -1
        self.timestamp = 0
        self.key: bytes | None = None
        self.value: bytes | None = None
        self.headers = _NO_HEADERS
        self.key_size = -1
        self.value_size = -1
        self.header_count = 0
        self.header_bytes = 0

    def skip_to(self, index: int) -> None:
        """Skip to the record at `index` without extracting anything."""
        wants_key, wants_value, wants_headers = self._wants_key, self._wants_value, self._wants_headers
        self._wants_key = self._wants_value = self._wants_headers = False
        while self.index < index - 1 and self.read_next():
            pass
        self._wants_key, self._wants_value, self._wants_headers = wants_key, wants_value, wants_headers

    def read_next(self) -> bool:
        """Read the next record. Return whether there is one. Raises OverLimit and the errors of `budget`."""
        if self._left <= 0:
            return False
        cursor = self._cursor
        self._left -= 1
        self.index += 1
        cursor.varint()  # length, which a broker ignores in compressed batches
        cursor.skip(1)  # attributes, which are unused
        self.timestamp = _signed((self._base + cursor.varlong()) & _U64)
        cursor.varint()  # offset delta
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
        self.header_bytes = 0
        if self.header_count > 0:
            self._read_headers()
        elif self._wants_headers:
            self.headers = _NO_HEADERS
        if cursor.failed:
            raise RuntimeError("records that followed the format no longer do")
        work = _RECORD_WORK + (self.key_size if self.key_size > 0 else 0)
        self._budget.worked(work + (self.value_size if self.value_size > 0 else 0))
        return True

    def _read_headers(self) -> None:
        cursor = self._cursor
        left = self.header_count
        names = self._header_names
        found: list[Header] = []
        while left > 0 and not cursor.failed:
            size = cursor.varint()
            self.header_bytes += size if size > 0 else 0  # scanned records have no null names
            is_wanted = self._wants_headers and size <= self._longest_name and len(found) < _MOST_HEADERS
            name = b""
            if is_wanted:
                name = self._taken(size) or b""
                is_wanted = names is None or name in names
            else:
                cursor.skip(size)
            size = cursor.varint()
            self.header_bytes += size if size > 0 else 0
            if is_wanted:
                found.append((name, self._taken(size)))
                self._budget.worked(_TAKEN_HEADER_WORK)
            else:
                cursor.skip(size)
            self._budget.worked(_HEADER_WORK)
            left -= 1
        if self._wants_headers:
            self.headers = tuple(found)

    def _taken(self, size: int) -> bytes | None:
        """Return the next `size` bytes, or as many of them as are selected; None for null."""
        if size < 0:
            return None
        wanted = size if size < self._most_bytes else self._most_bytes
        self._budget.check_held(wanted)
        cursor = self._cursor
        at = cursor.position
        if size <= cursor.end - at:
            cursor.position = at + size
            return bytes(cursor.source[at : at + wanted])
        found = self._gathered(wanted)
        cursor.skip(size - wanted)
        return found

    def _gathered(self, size: int) -> bytes:
        """Return the next `size` bytes like `_taken`, for a part that spans several pieces."""
        if size > self._window_bytes:
            raise OverLimit(PayloadLimit.WINDOW, self._window_bytes)
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


class TooMuch(Exception):
    """Raised if the extracted records need more memory than is allowed."""


class TakenRecord:
    """A record as it arrived, and the reason `why` it was taken. `timestamp` is in ms.

    This is a plain class, because there are many records.
    """

    def __init__(
        self, index: int, timestamp: int, why: Any, key: bytes | None, value: bytes | None, headers: list[Header]
    ) -> None:
        self.index = index
        self.timestamp = timestamp
        self.why = why
        self.key = key
        self.value = value
        self.headers = headers


class TakenRecords:
    """The taken records, in the batch's order, and their approximate memory (bytes)."""

    def __init__(self, records: list[TakenRecord], size: int) -> None:
        self.records = records
        self.size = size


def take_records(
    data: Piece,
    start: int,
    end: int,
    count: int,
    base_timestamp: int,
    pieces: DecompressedStream | None,
    budget: DecompressionBudget,
    wanted: WhyTaken,
    most_bytes: int,
    time_of_all: int | None = None,
) -> TakenRecords | None:
    """Return the selected ones of `count` records in data[start:end] and in the `pieces` after it, if any.

    `time_of_all` is the timestamp (ms) of all records, or None if the batch does not set one. Returns None if the
    records do not follow the format. Raises TooMuch for more than `most_bytes`, OverLimit and Abandoned.
    """
    cursor = Cursor(data, start, end, pieces, budget)
    records: list[TakenRecord] = []
    held = 0
    index = 0
    while index < count:
        cursor.varint()  # length, which the fields fill
        cursor.skip(1)  # attributes, which are unused
        delta = cursor.varlong()
        cursor.varint()  # offset delta
        key_size = cursor.varint()
        if cursor.failed:
            return None
        time = _signed((base_timestamp + delta) & _U64) if time_of_all is None else time_of_all
        why = wanted(index, time, key_size)
        if why is None:
            cursor.skip(key_size)
            cursor.skip(cursor.varint())
            left = cursor.varint()
            while left > 0 and not cursor.failed:
                cursor.skip(cursor.varint())
                cursor.skip(cursor.varint())
                budget.worked(1)
                left -= 1
        else:
            held += RECORD_BYTES
            held += _checked(key_size, held, most_bytes)
            key = _bytes_of(cursor, key_size)
            value_size = cursor.varint()
            held += _checked(value_size, held, most_bytes)
            value = _bytes_of(cursor, value_size)
            headers: list[Header] = []
            left = cursor.varint()
            while left > 0 and not cursor.failed:
                held += HEADER_BYTES
                size = cursor.varint()
                held += _checked(size, held, most_bytes)
                name = _bytes_of(cursor, size)
                size = cursor.varint()
                held += _checked(size, held, most_bytes)
                headers.append((name or b"", _bytes_of(cursor, size)))
                budget.worked(_RECORD_WORK)
                left -= 1
            records.append(TakenRecord(index, time, why, key, value, headers))
        if cursor.failed or left < 0:
            return None
        budget.worked(_RECORD_WORK)
        index += 1
    return TakenRecords(records, held)


def _checked(size: int, held: int, most_bytes: int) -> int:
    """Return `size` (0 for null) if there is memory for this many bytes. Raises TooMuch."""
    more = max(size, 0)
    if held + more > most_bytes:
        raise TooMuch
    return more


def _bytes_of(cursor: Cursor, size: int) -> bytes | None:
    """Return the next `size` bytes, across pieces. Return None for null, or if the data end within them."""
    if size < 0:
        return None
    at = cursor.position
    if size <= cursor.end - at:
        cursor.position = at + size
        return bytes(cursor.data[at : at + size])
    found = bytearray()
    while size > cursor.end - cursor.position:
        found += bytes(cursor.data[cursor.position : cursor.end])
        size -= cursor.end - cursor.position
        cursor.position = cursor.end
        if not cursor.refill():
            cursor.failed = True
            return None
    found += bytes(cursor.data[cursor.position : cursor.position + size])
    cursor.position += size
    return bytes(found)


def _signed(pattern: int) -> int:
    """Return a 64-bit pattern as an int64."""
    return (pattern ^ _SIGN_64) - _SIGN_64
