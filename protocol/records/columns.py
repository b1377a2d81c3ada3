# cython: boundscheck=False, wraparound=False
# Why that is safe: `Columns` have one length. Each function first compares its rows with the lengths of its buffers,
# and a Cursor, which reads the payload, compares each read with its end.
"""Reads a batch's records into columns, or only adds them up, in one pass and without creating an object per record.

`read_columns` fills rows of int64 columns with numbers and positions. Keys and values stay in the payload until
`gather` copies one column's keys or values consecutively, as Arrow stores them. `read_totals` only computes sums. The
caller provides the buffers, so this file does not use numpy or Arrow. Compiled with the types in columns.pxd if a C
compiler is installed.
"""

from typing import Any

from sluicegate.protocol.integers import ALL_64, LONG_MAX, SIGN_64
from sluicegate.protocol.records.scan import Cursor

_SIGN_64 = SIGN_64
_U64 = ALL_64
_MOST = LONG_MAX

Buffer = Any  # a buffer of int64, or of the type that the docstring names


class Columns:
    """Writable int64 buffers of equal length. In all of them, row i belongs to the same record.

    `key_size` and `value_size` are -1 for null. `key_at`, `value_at` and `headers_at` are positions in the payload.
    Headers begin with their count.
    """

    def __init__(
        self,
        offset: Buffer,
        timestamp: Buffer,
        key_at: Buffer,
        key_size: Buffer,
        value_at: Buffer,
        value_size: Buffer,
        headers_at: Buffer,
        headers_size: Buffer,
    ) -> None:
        others = (timestamp, key_at, key_size, value_at, value_size, headers_at, headers_size)
        if any(len(column) != len(offset) for column in others):
            raise ValueError("columns of different lengths")
        self.offset = offset
        self.timestamp = timestamp
        self.key_at = key_at
        self.key_size = key_size
        self.value_at = value_at
        self.value_size = value_size
        self.headers_at = headers_at
        self.headers_size = headers_size


def read_columns(
    data: memoryview,
    position: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    columns: Columns,
    row: int,
) -> int:
    """Read `count` records from an uncompressed payload, data[position:end], into the rows from `row` on.

    Returns the number of records that were read. It is smaller than `count` if the payload does not follow the format.
    `base_timestamp` is a 64-bit pattern (ms). Timestamps wrap like Java's long.
    """
    if row < 0 or count > len(columns.offset) - row:
        raise IndexError(f"{count} records from row {row} on, of {len(columns.offset)}")
    cursor = Cursor(data, position, end)
    index = 0
    while index < count:
        length = cursor.varint()
        body = cursor.position
        if cursor.failed or length < 0 or length > end - body:
            break
        body_end = body + length
        cursor.position = body + 1  # attributes, which are unused
        delta = cursor.varlong()
        columns.timestamp[row] = _signed((base_timestamp + delta) & _U64)
        columns.offset[row] = base_offset + cursor.varint()
        size = cursor.varint()
        columns.key_at[row] = cursor.position
        columns.key_size[row] = size if size >= 0 else -1
        cursor.skip(size)
        size = cursor.varint()
        columns.value_at[row] = cursor.position
        columns.value_size[row] = size if size >= 0 else -1
        cursor.skip(size)
        columns.headers_at[row] = cursor.position
        columns.headers_size[row] = body_end - cursor.position
        if cursor.failed or cursor.position >= body_end:
            break
        cursor.position = body_end
        row += 1
        index += 1
    return index


def gather(
    data: memoryview,
    starts: Buffer,
    sizes: Buffer,
    first: int,
    count: int,
    ends: Buffer,
    values: Buffer,
    filled: int,
) -> int:
    """Append data[starts[i]:starts[i] + sizes[i]] to `values`, for `count` rows from `first` on.

    `values` already contains `filled` bytes. ends[i + 1] becomes the end of row i. A negative size means null and adds
    no bytes. Returns the new number of filled bytes.
    """
    row = first
    last = first + count
    if first < 0 or last > len(starts) or last > len(sizes) or last >= len(ends):
        raise IndexError(f"rows {first} to {last}")
    while row < last:
        size = sizes[row]
        if size > 0:
            start = starts[row]
            values[filled : filled + size] = data[start : start + size]
            filled += size
        row += 1
        ends[row] = filled
    return filled


def read_headers(data: memoryview, position: int, end: int) -> list[tuple[bytes, bytes | None]] | None:
    """Return the headers at data[position:end] as (name, value or None for null). Return None if they are invalid."""
    cursor = Cursor(data, position, end)
    left = cursor.varint()
    found: list[tuple[bytes, bytes | None]] = []
    while left > 0 and not cursor.failed:
        size = cursor.varint()
        start = cursor.position
        cursor.skip(size)
        name = bytes(data[start : cursor.position])
        size = cursor.varint()
        start = cursor.position
        cursor.skip(size)
        found.append((name, bytes(data[start : cursor.position]) if size >= 0 else None))
        left -= 1
    return None if cursor.failed or cursor.position != end else found


class BatchTotals:
    """The totals over `records` records: earliest and latest timestamps (ms), null keys, and key and value bytes."""

    def __init__(self) -> None:
        self.records = 0
        self.earliest = 0
        self.latest = 0
        self.null_keys = 0
        self.bytes = 0


def read_totals(data: memoryview, position: int, end: int, count: int, base_timestamp: int) -> BatchTotals:
    """Add up `count` records in an uncompressed payload, data[position:end].

    Stops early if the payload does not follow the format. `base_timestamp` is a 64-bit pattern (ms). Timestamps wrap
    like Java's long.
    """
    cursor = Cursor(data, position, end)
    totals = BatchTotals()
    index = 0
    earliest = _MOST
    latest = -_MOST - 1
    null_keys = 0
    filled = 0
    while index < count:
        length = cursor.varint()
        body = cursor.position
        if cursor.failed or length < 0 or length > end - body:
            break
        body_end = body + length
        cursor.position = body + 1  # attributes, which are unused
        timestamp = _signed((base_timestamp + cursor.varlong()) & _U64)
        cursor.varint()
        size = cursor.varint()
        cursor.skip(size)
        if size < 0:
            null_keys += 1
        else:
            filled += size
        size = cursor.varint()
        cursor.skip(size)
        if size > 0:
            filled += size
        if cursor.failed or cursor.position >= body_end:
            break
        cursor.position = body_end
        earliest = min(earliest, timestamp)
        latest = max(latest, timestamp)
        index += 1
    totals.records = index
    totals.earliest = earliest
    totals.latest = latest
    totals.null_keys = null_keys
    totals.bytes = filled
    return totals


def _signed(pattern: int) -> int:
    """Return a 64-bit pattern as an int64."""
    return (pattern ^ _SIGN_64) - _SIGN_64
