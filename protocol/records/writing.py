"""Writes record batches as a producer does, with magic 2 (KIP-98).

It only writes new records. A batch from the wire is never rebuilt from its records.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.protocol.integers import ALL_64, SIGN_64, signed_varint
from sluicegate.protocol.records.batch_output import BatchOutput
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.record_batch import (
    HEADER,
    HEADER_BYTES,
    MAGIC_2,
    NO_PRODUCER_ID,
    RecordBatch,
)

_NO_LEADER = -1
NO_PRODUCER = (NO_PRODUCER_ID, -1, -1)
_ANY_SIZE = 1 << 50
_HALF, _ALL = SIGN_64, ALL_64 + 1


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to write. `timestamp` is in int64 ms. A key or value of None means null."""

    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


def write_batch(
    records: Sequence[NewRecord], producer: tuple[int, int, int] = NO_PRODUCER, attributes: int = 0
) -> bytes:
    """Return one batch with at least one record.

    `producer` is the id, epoch and first sequence number of an idempotent producer. `attributes` are the codec and
    flags, as in `sluicegate.protocol.records.record_batch`.
    """
    base = records[0].timestamp
    latest = max(record.timestamp for record in records)
    count = len(records)
    payload = b"".join(encoded_record(record, offset, base) for offset, record in enumerate(records))
    header = HEADER.pack(0, 0, _NO_LEADER, MAGIC_2, 0, attributes, count - 1, base, latest, *producer, count)
    budget = DecompressionBudget(_ANY_SIZE, 0, _go_on)
    output = BatchOutput(RecordBatch(memoryview(header), 0, HEADER_BYTES), _ANY_SIZE, _ANY_SIZE, budget)
    output.plain += payload
    return output.finished(base, latest)


def _go_on() -> None:
    """Do nothing, because the proxy writes few records of its own."""


def encoded_record(record: NewRecord, offset: int, base_timestamp: int) -> bytes:
    """Return an encoded record with its length. `offset` is its position in the batch."""
    delta = (record.timestamp - base_timestamp + _HALF) % _ALL - _HALF  # wraps like Java's long
    parts = [b"\0", signed_varint(delta), signed_varint(offset), _sized(record.key), _sized(record.value)]
    parts.append(signed_varint(len(record.headers)))
    for name, value in record.headers:
        parts += (_sized(name), _sized(value))
    body = b"".join(parts)
    return signed_varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    """Return bytes preceded by their length, which is -1 for null."""
    return signed_varint(-1) if data is None else signed_varint(len(data)) + data
