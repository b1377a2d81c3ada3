"""Changes the times of a batch's records, and nothing else.

A record (KIP-98): length varint | attributes int8 | timestamp_delta varlong | offset_delta varint | key | value |
headers. The bytes after the timestamp are copied as they came. A record's length, the deltas, and the batch's first and
latest time follow from the new times; deltas wrap like Java's long.

Compiled with the types in restamp.pxd if a C compiler is installed.
"""

from collections.abc import Callable

from crc32c import crc32c

from sluicegate.protocol.integers import ALL_64, SIGN_64, signed_varint
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.record_batch import HEADER, LOG_OVERHEAD_BYTES, RecordBatch
from sluicegate.protocol.records.scan import Cursor

_SIGN_64 = SIGN_64
_U64 = ALL_64
_CRC_COVERS_FROM = 21
_RECORD_WORK = 128

NewTime = Callable[[int, int], int | None]
"""From a record's position in the batch and its time (ms) to its new time; None: there is none."""


class Restamped:
    """Records with new times, with the first and the latest time (ms)."""

    def __init__(self, payload: bytearray, base_timestamp: int, max_timestamp: int) -> None:
        self.payload = payload
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp


def restamp_records(
    data: memoryview, count: int, base_timestamp: int, new_time: NewTime, budget: DecompressionBudget
) -> Restamped | None:
    """Return the `count` records of a whole plain payload, each with its time from `new_time`.

    None if the payload is not exactly `count` records that fill their stated lengths, or if a record gets no time.
    Raises what `budget` raises.
    """
    cursor = Cursor(data, 0, len(data))
    end = len(data)
    payload = bytearray()
    new_base = latest = 0
    index = 0
    while index < count:
        length = cursor.varint()
        body = cursor.position
        if cursor.failed or length < 0 or length > end - body:
            return None
        cursor.position = body + 1  # attributes, which are unused
        time = _signed((base_timestamp + cursor.varlong()) & _U64)
        rest = cursor.position
        cursor.varint()  # offset delta
        cursor.skip(cursor.varint())
        cursor.skip(cursor.varint())
        headers = cursor.varint()
        while headers > 0 and not cursor.failed:
            cursor.skip(cursor.varint())
            cursor.skip(cursor.varint())
            headers -= 1
        if cursor.failed or headers < 0 or cursor.position != body + length:
            return None
        given = new_time(index, time)
        if given is None:
            return None
        if index == 0:
            new_base = latest = given
        latest = max(latest, given)
        delta = signed_varint(_signed((given - new_base) & _U64))
        payload += signed_varint(1 + len(delta) + cursor.position - rest)
        payload += data[body : body + 1]
        payload += delta
        payload += data[rest : cursor.position]
        budget.worked(length + _RECORD_WORK)
        index += 1
    return Restamped(payload, new_base, latest) if cursor.position == end else None


def with_payload(batch: RecordBatch, payload: bytes, base_timestamp: int, max_timestamp: int) -> bytes:
    """Return the batch with another payload, compressed by the codec in its attributes, and other times.

    Count, offsets, attributes, producer id, epoch and sequence stay; length and CRC are recomputed.
    """
    length = HEADER.size - LOG_OVERHEAD_BYTES + len(payload)

    def header(crc: int) -> bytes:
        return HEADER.pack(
            batch.base_offset,
            length,
            batch.partition_leader_epoch,
            batch.magic,
            crc,
            batch.attributes,
            batch.last_offset_delta,
            base_timestamp,
            max_timestamp,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.record_count,
        )

    covered = header(0)[_CRC_COVERS_FROM:] + payload
    return header(crc32c(covered))[:_CRC_COVERS_FROM] + covered


def _signed(pattern: int) -> int:
    """Return the int64 of a 64-bit pattern."""
    return (pattern ^ _SIGN_64) - _SIGN_64
