"""Takes some records out of a batch: key, value and headers as they came, of those alone that are wanted.

For a batch that `sluicegate.protocol.records.scan` has found whole. A payload is read piece by piece, as the scan reads
it; only what is taken is kept. Compiled with the types in taking.pxd where a C compiler was at hand.
"""

from collections.abc import Callable
from typing import Any

from sluicegate.protocol.int64 import ALL_64, SIGN_64
from sluicegate.protocol.records.codecs.codec import Piece
from sluicegate.protocol.records.codecs.decompression import Pieces
from sluicegate.protocol.records.codecs.decompression_budget import Allowance
from sluicegate.protocol.records.scan import Cursor

_SIGN_64 = SIGN_64
_U64 = ALL_64
_RECORD_WORK = 128
# What a record that is kept, and each of its headers, takes besides its bytes: here, and where it waits to be written.
RECORD_BYTES = 2048
HEADER_BYTES = 256

Header = tuple[bytes, bytes | None]
Wanted = Callable[[int, int, int], Any]
"""From a record's place in the batch, its time (ms) and its key's size (negative: null) to why it is taken; None: it
is not.
"""


class TooMuch(Exception):
    """What is wanted takes more memory than there is for it."""


class TakenRecord:
    """A record as it came, and `why` it was taken; `timestamp` in ms. A plain class: one is made for each."""

    def __init__(
        self, index: int, timestamp: int, why: Any, key: bytes | None, value: bytes | None, headers: list[Header]
    ) -> None:
        self.index = index
        self.timestamp = timestamp
        self.why = why
        self.key = key
        self.value = value
        self.headers = headers


class Taken:
    """What was taken, in the batch's order, and the memory that it takes (bytes, about)."""

    def __init__(self, records: list[TakenRecord], size: int) -> None:
        self.records = records
        self.size = size


def take_records(
    data: Piece,
    start: int,
    end: int,
    count: int,
    base_timestamp: int,
    pieces: Pieces | None,
    allowance: Allowance,
    wanted: Wanted,
    most_bytes: int,
    time_of_all: int | None = None,
) -> Taken | None:
    """Of `count` records of data[start:end], and where that is only the first piece, of what `pieces` has behind it.

    `time_of_all`: the time (ms) of each of them, where their batch says so. None where they do not follow the format.
    Raises TooMuch beyond `most_bytes`, OverLimit, and Abandoned.
    """
    cursor = Cursor(data, start, end, pieces, allowance)
    records: list[TakenRecord] = []
    held = 0
    index = 0
    while index < count:
        cursor.varint()  # the length, which the fields fill
        cursor.skip(1)  # attributes, of which none is in use
        delta = cursor.varlong()
        cursor.varint()  # the offset delta
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
                allowance.worked(1)
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
                allowance.worked(_RECORD_WORK)
                left -= 1
            records.append(TakenRecord(index, time, why, key, value, headers))
        if cursor.failed or left < 0:
            return None
        allowance.worked(_RECORD_WORK)
        index += 1
    return Taken(records, held)


def _checked(size: int, held: int, most_bytes: int) -> int:
    """`size` more bytes, where there is room for them (none for null). Raises TooMuch."""
    more = max(size, 0)
    if held + more > most_bytes:
        raise TooMuch
    return more


def _bytes_of(cursor: Cursor, size: int) -> bytes | None:
    """The next `size` bytes, over the ends of pieces; None for null, and where the data ends within."""
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
    """The int64 that a pattern of 64 bits stands for."""
    return (pattern ^ _SIGN_64) - _SIGN_64
