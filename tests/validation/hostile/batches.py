"""Defines batches of records that are costly to rewrite, to copy or to read headers from, each for a different
mechanism."""

import gzip
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import lz4.frame
import zstandard

from tests.wire.batches import (
    CODECS,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    XERIAL,
    ZSTD,
    Rec,
    batch,
    compress,
    message,
    record,
    varint,
)

NOW = 1_800_000_000_000
LATE = NOW * 1000
Header = tuple[bytes, bytes | None]
_MARK, _RULE = b"sluicegate.reason", b"sluicegate.rule"
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 8, 16, 32, 64


class HostileBatch(NamedTuple):
    """`make`: from the size (bytes of records) to a batch."""

    name: str
    make: Callable[[int], bytes]


TIMES: dict[str, Callable[[int], int]] = {
    "late": lambda _: LATE,
    "late and good in turn": lambda i: LATE if i % 2 else NOW,
    "falling": lambda i: LATE - i,
    "none": lambda _: -1,
    "at both ends of int64": lambda i: 2**63 - 1 if i % 2 else -(2**63),
    "one late after good ones": lambda i: LATE if i == 90 else NOW,
    "seconds, micro- and nanoseconds": lambda i: NOW // 1000 * 1000 ** (i % 4),
    "distinct": lambda i: LATE + i * 7_919,
}
"""The times (ms) of records by position."""

HEADERS: dict[str, tuple[int, Callable[[int], Header]]] = {
    "no headers": (0, lambda _: (b"", None)),
    "headers of one name": (900, lambda _: (b"h", b"")),
    "headers of many names": (900, lambda i: (b"name%d" % i, None)),
    "headers like marks": (900, lambda i: ((_MARK, _RULE)[i % 2], b"")),
    "names that begin as marks and have a NUL": (900, lambda i: (_MARK + b"\0%d" % i, b"")),
    "names that are no UTF-8": (900, lambda i: (b"\xff%d" % (i % 7), b"\xfe")),
    "more headers than are read": (11_000, lambda i: (b"h", b"%d" % i)),
    "a header of 100 kB": (1, lambda _: (b"n" * 50_000, b"v" * 50_000)),
}
"""The number of a record's headers, and each header by position."""


def _records(size: int, time: Callable[[int], int], headers: Sequence[Header]) -> Iterator[Rec]:
    """Yield records of about `size` bytes together: with and without a key, with and without a value."""
    i, made = 0, 0
    each = 12 + sum(4 + len(name) + len(value or b"") for name, value in headers)
    while made < size:
        yield Rec(time(i), None if i % 3 == 2 else b"k", (None, b"", b"{}")[i % 3], headers)
        i, made = i + 1, made + each


def _shape(
    codec: int, time: Callable[[int], int], count: int, header: Callable[[int], Header]
) -> Callable[[int], bytes]:
    return lambda size: batch(list(_records(size, time, [header(i) for i in range(count)])), codec)


def _plain(size: int) -> tuple[bytes, int]:
    made = [record(rec, i, LATE) for i, rec in enumerate(_records(size, TIMES["late"], []))]
    return b"".join(made), len(made)


def _in(codec: int, packed: Callable[[bytes], bytes], **fields: int) -> Callable[[int], bytes]:
    """Return a function that makes a batch of late records whose payload `packed` compresses."""

    def make_batch(size: int) -> bytes:
        payload, count = _plain(size)
        known = {"count": count, "base_timestamp": LATE, "max_timestamp": LATE} | fields
        return batch([], codec, compressed=packed(payload), **known)

    return make_batch


def _parts(payload: bytes, size: int) -> list[bytes]:
    return [payload[at : at + size] for at in range(0, len(payload), size)]


def _lz4_blocks(payload: bytes) -> bytes:
    blocks = b"".join(struct.pack("<I", len(part) | 1 << 31) + part for part in _parts(payload, 7))
    return lz4.frame.compress(b"", block_linked=False)[:-4] + blocks + bytes(4)


def _xerial_chunks(payload: bytes) -> bytes:
    chunks = (compress(SNAPPY, part) for part in _parts(payload, 100))
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(each)) + each for each in chunks)


def _with_dictionary(payload: bytes) -> bytes:
    words = zstandard.ZstdCompressionDict(b"sluicegate " * 100, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdCompressor(dict_data=words).compress(payload)


def _overlong(size: int) -> bytes:
    """Return records whose numbers have five bytes each."""
    body = b"\0" + b"\x80\x80\x80\x80\0" * 2 + b"\x81\x80\x80\x80\0" * 2 + b"\x80\x80\x80\x80\0"
    one = varint(len(body)) + body
    return batch(
        [], NONE, payload=one * (size // len(one)), count=size // len(one), base_timestamp=LATE, max_timestamp=LATE
    )


def _old(size: int) -> bytes:
    return message(1, b"", key=None, timestamp=LATE) * (size // 34)


OF_RECORDS = [
    HostileBatch(f"times {time}, {header}, {codec}", _shape(CODECS[codec], TIMES[time], *HEADERS[header]))
    for i, time in enumerate(TIMES)
    for j, header in enumerate(HEADERS)
    if (i + j) % 2 == 0 or time == "late"
    for codec in [list(CODECS)[(i + 2 * j) % len(CODECS)]]
]

OF_FRAMES = [
    HostileBatch("many gzip members", _in(GZIP, lambda p: b"".join(gzip.compress(part, 0) for part in _parts(p, 500)))),
    HostileBatch(
        "many zstd frames", _in(ZSTD, lambda p: b"".join(zstandard.compress(part) for part in _parts(p, 100)))
    ),
    HostileBatch("a zstd dictionary", _in(ZSTD, _with_dictionary)),
    HostileBatch("lz4 blocks of seven bytes", _in(LZ4, _lz4_blocks)),
    HostileBatch("xerial chunks of 100 bytes", _in(XERIAL, _xerial_chunks)),
    HostileBatch("half a gzip member", _in(GZIP, lambda p: gzip.compress(p)[:-50])),
    HostileBatch("a count of 2^31 - 1", _in(NONE, lambda p: p, count=2**31 - 1)),
    HostileBatch("a base at the end of int64", _in(ZSTD, zstandard.compress, base_timestamp=2**63 - 1)),
    HostileBatch("one record after many is missing", _in(ZSTD, lambda p: zstandard.compress(p[:-5]))),
    HostileBatch("a time of append", _in(ZSTD, zstandard.compress, flags=LOG_APPEND_TIME)),
    HostileBatch(
        "a transaction", _in(GZIP, gzip.compress, flags=TRANSACTIONAL, producer_id=7, producer_epoch=0, base_sequence=0)
    ),
    HostileBatch("control records", _in(ZSTD, zstandard.compress, flags=CONTROL)),
    HostileBatch("a horizon of deletion", _in(ZSTD, zstandard.compress, flags=DELETE_HORIZON)),
    HostileBatch("numbers of five bytes", _overlong),
    HostileBatch("messages of magic 1", _old),
    HostileBatch("a value of zeros", lambda size: batch([Rec(LATE, None, bytes(size))], ZSTD)),
    HostileBatch("a key of zeros", lambda size: batch([Rec(LATE, bytes(size), None)], LZ4)),
    HostileBatch("empty batches in a row", lambda size: batch([], count=0, base_timestamp=LATE) * (size // 61)),
]

BATCHES = [*OF_RECORDS, *OF_FRAMES]
