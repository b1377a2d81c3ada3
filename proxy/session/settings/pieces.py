"""Joins the parts of a large message into pieces. Joining tens of megabytes at once would delay other work."""

from collections.abc import Callable, Iterable, Iterator

_PIECE_BYTES = 1 << 20


def in_pieces(parts: Iterable[bytes | bytearray | memoryview], give_way: Callable[[], None]) -> list[bytes]:
    """Return a message in pieces of about a megabyte. `give_way` is called between them."""
    return list(_pieces(parts, give_way))


def _pieces(parts: Iterable[bytes | bytearray | memoryview], give_way: Callable[[], None]) -> Iterator[bytes]:
    gathered: list[bytes | bytearray | memoryview] = []
    size = 0
    for part in parts:
        for start in range(0, len(part), _PIECE_BYTES):
            piece = part[start : start + _PIECE_BYTES]
            gathered.append(piece)
            size += len(piece)
            if size >= _PIECE_BYTES:
                yield b"".join(gathered)
                gathered.clear()
                size = 0
                give_way()
    if gathered:
        yield b"".join(gathered)
