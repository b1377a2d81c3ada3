"""Converts messages of magic 0 and 1 to one batch of magic 2, as brokers up to Kafka 3.9 do before storing them.

Kafka 4 rejects both formats (KIP-724, KIP-896). The batch contains what a broker of Kafka 3.9 would store
(`LogValidator`):

- A set of uncompressed messages becomes one uncompressed batch. A compressed wrapper becomes one batch with the
  wrapper's codec.
- Offsets are 0, 1, 2 and so on, whatever the messages state.
- Messages of magic 0 have no timestamp (-1). If a wrapper of magic 1 claims LogAppendTime, all its messages get its
  timestamp. The batch itself never claims LogAppendTime, because the topic determines that.

The set must have been validated before (`sluicegate.validation.legacy`).
"""

from collections.abc import Callable

from sluicegate.protocol.records.batch_output import BatchOutput
from sluicegate.protocol.records.codecs.compression import PIECE_BYTES
from sluicegate.protocol.records.codecs.decompression import DecompressedStream
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.contents import WantedParts
from sluicegate.protocol.records.message_contents import MessageContents
from sluicegate.protocol.records.message_set import Message, read_message
from sluicegate.protocol.records.record_batch import (
    HEADER,
    HEADER_BYTES,
    MAGIC_2,
    NO_TIMESTAMP,
    RecordBatch,
    next_batch_end,
)
from sluicegate.protocol.records.writing import NO_PRODUCER, NewRecord, encoded_record

_NO_LEADER = -1
# The cost of writing a record, in bytes of work.
_RECORD_WORK = 4096


class NegativeTimestamp(Exception):
    """Raised for a timestamp before 1970 other than -1. A broker's conversion fails for it."""


class BatchSizes:
    """The maximum sizes (bytes) of a converted batch, its uncompressed payload, and a message that spans pieces."""

    def __init__(self, batch: int, payload: int, window: int) -> None:
        self.batch = batch
        self.payload = payload
        self.window = window


def convert_messages(
    records: memoryview,
    count: int,
    opens: Callable[[Message], DecompressedStream],
    most: BatchSizes,
    budget: DecompressionBudget,
) -> bytes:
    """Return a batch of magic 2 with the `count` messages in a valid set.

    `opens` decompresses a wrapper's value. Raises NegativeTimestamp, BatchTooLarge, OverLimit, and the errors of the
    budget.
    """
    end = next_batch_end(records, 0)
    assert end is not None  # a set without a message is not converted
    first = read_message(records, 0, end)
    pieces = opens(first) if first.codec_id else None
    of_wrapper = first.timestamp if pieces is not None and first.is_log_append_time else None
    wanted = WantedParts(key=True, value=True, headers=False, window_bytes=most.window)
    messages = MessageContents(records, pieces, wanted, budget)
    header = HEADER.pack(0, 0, _NO_LEADER, MAGIC_2, 0, first.codec_id, count - 1, 0, 0, *NO_PRODUCER, count)
    output = BatchOutput(RecordBatch(memoryview(header), 0, HEADER_BYTES), most.batch, most.payload, budget)
    base = latest = NO_TIMESTAMP
    while messages.read_next():
        time = messages.timestamp if of_wrapper is None else of_wrapper
        if time < 0 and time != NO_TIMESTAMP:
            raise NegativeTimestamp
        if messages.index == 0:
            base = time
        latest = max(latest, time)
        output.plain += encoded_record(NewRecord(time, messages.key, messages.value), messages.index, base)
        if len(output.plain) >= PIECE_BYTES:
            output.flush()
        budget.worked(_RECORD_WORK)
    return output.finished(base, latest)
