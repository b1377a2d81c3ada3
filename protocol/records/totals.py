"""What a batch's records add up to, in one pass and without an object or a column for any of them.

Compiled with the types in totals.pxd where a C compiler was at hand.
"""

from sluicegate.protocol.int64 import ALL_64, LONG_MAX, SIGN_64
from sluicegate.protocol.records.scan import Cursor

_SIGN_64 = SIGN_64
_U64 = ALL_64
_MOST = LONG_MAX


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
