"""What is sent in place of a rejected batch: one that nobody can append, so that the broker still has its say.

A broker has reasons of its own that come before a batch's content (unknown partition, no permission, not the leader,
too few replicas, the state of a transaction), and its order of checks is kept only if it is asked. A stand-in carries
what those checks look at (codec, transactional flag, producer id, epoch, sequence) and no record. It is wrong in three
ways that any implementation looks at: its CRC, its record count and its last offset delta.
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
    """For a batch, whole or cut: a broker answers CORRUPT_MESSAGE, and writes no line in its log.

    It counts it, as InvalidMessageCrcRecordsPerSec; what else it rejects a batch for, it counts as a failed request and
    writes an error with a stack trace about.
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
    """The batch or head of a batch over which a broker fails the whole request, whatever else is in it; None: there is
    none. It fails because it looks for producer ids in all batches before it looks into any. `give_way` is called now
    and then.
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
