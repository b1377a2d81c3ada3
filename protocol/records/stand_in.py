"""Builds stand-ins: invalid batches that replace rejected ones, so that the broker still makes its own checks.

A broker makes some checks before it validates a batch's content: unknown partition, permissions, leadership, replicas,
and the state of a transaction. Their order is preserved only if the broker receives a batch. A stand-in contains the
fields that these checks read (codec, transactional flag, producer id, epoch, sequence) and no records. It is invalid in
three ways that every implementation checks: its CRC, its record count and its last offset delta.
"""

from collections.abc import Callable

from sluicegate.protocol.records.record_batch import (
    CODEC_MASK,
    HEADER,
    HEADER_BYTES,
    HEADER_UP_TO_MAGIC_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC_2,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
    UP_TO_PRODUCER_ID_BYTES,
    CorruptBatch,
    RecordBatch,
    attributes_low_byte,
    magic_at,
    next_batch_end,
)

_LENGTH = HEADER_BYTES - LOG_OVERHEAD_BYTES
_KEPT = CODEC_MASK | TRANSACTIONAL
_WRONG_CRC = 0
_UP_TO_ATTRIBUTES_BYTES = 23
_BATCHES_AT_ONCE = 256


def stand_in(batch: memoryview) -> bytes:
    """Return the stand-in for a batch, which may be truncated.

    A broker responds to it with CORRUPT_MESSAGE and logs nothing.

    The broker counts the stand-in as InvalidMessageCrcRecordsPerSec. Batches that are invalid in other ways would count
    as failed requests and log errors with stack traces.
    """
    attributes, producer = 0, (NO_PRODUCER_ID, -1, -1)
    is_v2 = len(batch) >= _UP_TO_ATTRIBUTES_BYTES and magic_at(batch, 0) == MAGIC_2
    if is_v2 and len(batch) >= HEADER_BYTES:
        header = RecordBatch(batch, 0, len(batch))
        attributes = header.attributes & _KEPT
        producer = (header.producer_id, header.producer_epoch, header.base_sequence)
    elif is_v2:
        attributes = attributes_low_byte(batch, 0) & _KEPT
    return HEADER.pack(0, _LENGTH, -1, MAGIC_2, _WRONG_CRC, attributes, -1, -1, -1, *producer, 0)


def breaking_piece(records: memoryview, give_way: Callable[[], None]) -> bytes | None:
    """Return the batch, or the head of a batch, that makes a broker fail the whole request; None if there is none.

    The broker fails because it reads producer ids from all batches before it validates any. `give_way` is called from
    time to time.
    """
    start = seen = 0
    while True:
        seen += 1
        if seen % _BATCHES_AT_ONCE == 0:
            give_way()
        try:
            end = next_batch_end(records, start)
        except CorruptBatch:
            return bytes(records[start : start + HEADER_UP_TO_MAGIC_BYTES])
        if end is None:
            return None
        if magic_at(records, start) == MAGIC_2 and end - start < UP_TO_PRODUCER_ID_BYTES:
            return bytes(records[start:end])
        start = end
