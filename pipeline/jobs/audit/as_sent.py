"""A stored batch as its producer sent it: a broker numbers what it stores, and auditing is of what was sent.

What a broker changes for good is not undone: where it recompresses (`compression.type`) or converts, sizes are its own.
"""

from struct import Struct
from zlib import crc32

from crc32c import crc32c

from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.protocol.records.record_batch import LOG_APPEND_TIME, RecordBatch, has_valid_crc

CURRENT_VERSION, OLD_VERSION = 12, 2
"""Of Produce: the last that names topics, and the last that carries messages of magic 0 and 1."""

_INT32, _UINT32, _INT64 = Struct(">i"), Struct(">I"), Struct(">q")
_CRC_AT, _ATTRIBUTES_LOW_AT, _LAST_DELTA_AT = 17, 22, 23
_MESSAGE_CRC_AT, _MESSAGE_MAGIC_AT, _MESSAGE_ATTRIBUTES_AT = 12, 16, 17


def as_sent(batch: StoredBatch) -> bytearray:
    """A copy that begins with offset 0, whose records are numbered without the gaps that compaction has left, and that
    does not claim LogAppendTime, which only a broker has set on what is stored. One with a wrong CRC keeps it.
    """
    frame = bytearray(batch.data[batch.start : batch.end])
    if batch.header is None:
        _clear_message(frame)
        return frame
    _INT64.pack_into(frame, 0, 0)
    header = batch.header
    is_stamped = header.attributes & LOG_APPEND_TIME != 0
    if (has_gaps(batch) or is_stamped) and has_valid_crc(
        memoryview(frame), RecordBatch(memoryview(frame), 0, len(frame))
    ):
        if has_gaps(batch):
            _INT32.pack_into(frame, _LAST_DELTA_AT, header.record_count - 1)
        frame[_ATTRIBUTES_LOW_AT] &= ~LOG_APPEND_TIME
        _UINT32.pack_into(frame, _CRC_AT, crc32c(frame[_CRC_AT + 4 :]))
    return frame


def has_gaps(batch: StoredBatch) -> bool:
    """Whether compaction has taken records out of a batch of magic 2 and left others."""
    header = batch.header
    return header is not None and header.record_count > 0 and header.last_offset_delta + 1 != header.record_count


def _clear_message(frame: bytearray) -> None:
    stored = _UINT32.unpack_from(frame, _MESSAGE_CRC_AT)[0]
    is_stamped = frame[_MESSAGE_MAGIC_AT] > 0 and frame[_MESSAGE_ATTRIBUTES_AT] & LOG_APPEND_TIME
    if is_stamped and crc32(frame[_MESSAGE_MAGIC_AT:]) == stored:
        frame[_MESSAGE_ATTRIBUTES_AT] &= ~LOG_APPEND_TIME
        _UINT32.pack_into(frame, _MESSAGE_CRC_AT, crc32(frame[_MESSAGE_MAGIC_AT:]))
