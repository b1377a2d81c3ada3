# cython: boundscheck=False, wraparound=False
# Why that is safe: `Columns` are of one length, and each function first compares the rows that it is given with the
# lengths of its buffers; the payload is read by a Cursor, which compares each read with its end.
"""The records of a batch as columns, or only what they add up to: one pass, and no object for a record.

`read_columns` fills rows of int64 columns with numbers and places of bytes; keys and values stay where they are, until
`gather` puts those of one column behind each other, which is how Arrow wants them. `read_totals` fills none. Compiled
with the types in columns.pxd if a C compiler is there. The buffers are the caller's: nothing here knows numpy or Arrow.
"""

from sluicegate.protocol.int64 import ALL_64, LONG_MAX, SIGN_64
from sluicegate.protocol.records.scan import Cursor

_SIGN_64 = SIGN_64
_U64 = ALL_64
_MOST = LONG_MAX


class Columns:
    """Writable int64 buffers of equal length; row i of each is about the same record.

    `key_size` and `value_size` are -1 for null. `key_at`, `value_at` and `headers_at` are places in the payload that
    was read; headers begin with their count.
    """

    def __init__(self, offset, timestamp, key_at, key_size, value_at, value_size, headers_at, headers_size):
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


def read_columns(data, position, end, count, base_offset, base_timestamp, columns, row):
    """Read `count` records of a plain payload, data[position:end], into the rows from `row` on.

    Returns how many were read: fewer where the payload does not follow the format. `base_timestamp` is a pattern of 64
    bits; times wrap as Java's do.
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
        cursor.position = body + 1  # attributes, of which none is in use
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


def gather(data, starts, sizes, first, count, ends, values, filled):
    """Copy data[starts[i]:starts[i] + sizes[i]] for `count` rows from `first` on behind each other into `values`.

    `filled` bytes are there already; ends[i + 1] becomes the end of row i. A negative size is null and takes none.
    Returns the bytes filled then.
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


def read_headers(data, position, end):
    """The headers at data[position:end] as (name, value), a value None for null; None when they are broken."""
    cursor = Cursor(data, position, end)
    left = cursor.varint()
    found = []
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


class Totals:
    """Of the `records` read: the bounds of their times (ms), null keys, and the bytes of keys and values."""

    def __init__(self):
        self.records = 0
        self.earliest = 0
        self.latest = 0
        self.null_keys = 0
        self.bytes = 0


def read_totals(data, position, end, count, base_timestamp):
    """Add up `count` records of a plain payload, data[position:end]; fewer where it does not follow the format.

    `base_timestamp` is a pattern of 64 bits; times wrap as Java's do.
    """
    cursor = Cursor(data, position, end)
    totals = Totals()
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
        cursor.position = body + 1  # attributes, of which none is in use
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


def _signed(pattern):
    """The int64 that a pattern of 64 bits stands for."""
    return (pattern ^ _SIGN_64) - _SIGN_64
