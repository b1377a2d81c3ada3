"""Reads strings of any length in pieces, so that a long string never blocks other work."""

import codecs
from collections.abc import Callable, Iterator
from typing import Final

from sluicegate.validation.sensitive.paths import FieldPlace, FieldPolicy

PIECE_BYTES: Final = 64 * 1024
"""The maximum number of bytes to process without reporting the work."""
_MOST_BYTES_OF_CHARACTER: Final = 4
_HASH_WORK = 4
"""The cost of hashing a byte (ns)."""


def first_not_utf8(data: bytes, start: int, end: int, worked: Callable[[int], None]) -> int | None:
    """Return the position of the first byte that is not UTF-8, or None."""
    view = memoryview(data)
    while start < end:
        stop = min(start + PIECE_BYTES, end)
        try:
            start += codecs.utf_8_decode(view[start:stop], "strict", stop == end)[1]
        except UnicodeDecodeError as error:
            return start + error.start
        worked(PIECE_BYTES)
    return None


def replacement(data: bytes, start: int, end: int, fields: FieldPolicy, worked: Callable[[int], None]) -> bytes | None:
    """Return the replacement for the UTF-8 string from `start` to `end`, or None if the string does not change.

    Raises UnicodeError if the bytes are not valid UTF-8.
    """
    if end - start <= PIECE_BYTES:
        text = data[start:end]
        text.decode()
        new = fields.replaced((text,))
        return None if new == text else new
    if first_not_utf8(data, start, end, worked) is not None:
        raise UnicodeError
    new = fields.replaced(_pieces(data, start, end, worked))
    return None if len(new) == end - start and data[start:end] == new else new


def _pieces(data: bytes, start: int, end: int, worked: Callable[[int], None]) -> Iterator[bytes]:
    for at in range(start, end, PIECE_BYTES):
        yield data[at : min(at + PIECE_BYTES, end)]
        worked(_HASH_WORK * PIECE_BYTES)


def name_in(data: bytes, start: int, end: int, nodes: tuple[FieldPlace, ...], worked: Callable[[int], None]) -> str:
    """Return the UTF-8 name from `start` to `end`.

    If it is longer than all names of the places, returns only its beginning. Raises UnicodeError if the bytes are not
    valid UTF-8.
    """
    if end - start <= PIECE_BYTES:
        return data[start:end].decode()
    if first_not_utf8(data, start, end, worked) is not None:
        raise UnicodeError
    return data[start : min(end, start + distinguishing_bytes(nodes))].decode(errors="ignore")


def distinguishing_bytes(nodes: tuple[FieldPlace, ...]) -> int:
    """Return how many bytes distinguish a long name from all names in the places."""
    return _MOST_BYTES_OF_CHARACTER * (1 + max((node.longest_name for node in nodes), default=0))
