"""Checks a batch's header in the same order as a broker (docs/checks.md)."""

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_versions import ZSTD_SINCE
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.record_batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    NO_PRODUCER_ID,
    UP_TO_PRODUCER_ID_BYTES,
    RecordBatch,
    attributes_low_byte,
    has_valid_crc,
    magic_at,
    next_batch_end,
)
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.verdict import FaultStage, Finding, Reason

_LAST_CODEC = Codec.ZSTD.value
_BASE_OFFSET_BYTES = 8
_NO_BASE_OFFSET = bytes(_BASE_OFFSET_BYTES)
# Violations of the rules for requests. They are allocated once, because a request may have thousands of such
# partitions.
_NO_BATCH = Finding(ErrorCode.INVALID_RECORD, Reason.NO_BATCH, stage=FaultStage.PARTITION)
_OLD_MAGIC = Finding(ErrorCode.INVALID_RECORD, Reason.UNSUPPORTED_MAGIC, stage=FaultStage.PARTITION)
_NO_CODEC = Finding(ErrorCode.UNKNOWN_SERVER_ERROR, Reason.UNSUPPORTED_CODEC, stage=FaultStage.PARTITION)
_EARLY_ZSTD = Finding(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, Reason.UNSUPPORTED_CODEC, stage=FaultStage.PARTITION)
_TWO_BATCHES = Finding(ErrorCode.INVALID_RECORD, Reason.SEVERAL_BATCHES, stage=FaultStage.PARTITION)


def check_request_rules(records: memoryview, first_end: int | None, version: int) -> Finding | None:
    """Check the rules of Produce v3 and later: exactly one whole batch of magic 2, and zstd only from v7 on.

    Raises CorruptBatch if a second batch is damaged. Before v7, an unknown codec already fails here.
    """
    if first_end is None:
        return _NO_BATCH
    if magic_at(records, 0) != 2:
        return _OLD_MAGIC
    codec_id = attributes_low_byte(records, 0) & CODEC_MASK
    if version < ZSTD_SINCE and codec_id > _LAST_CODEC:
        return _NO_CODEC
    if version < ZSTD_SINCE and codec_id == _LAST_CODEC:
        return _EARLY_ZSTD
    if first_end < len(records) and next_batch_end(records, first_end) is not None:
        return _TWO_BATCHES
    return None


def check_stored_form(records: memoryview, start: int, end: int, policy: TopicPolicy) -> Finding | RecordBatch:
    """Check a magic 2 batch as a broker's log does before it reads records: base offset, size, CRC, codec.

    A batch that ends before its producer id fails earlier, because a broker reads producer ids before the log does.
    """
    if end - start < UP_TO_PRODUCER_ID_BYTES:
        return Finding(ErrorCode.UNKNOWN_SERVER_ERROR, Reason.CRC_MISMATCH)
    if records[start : start + _BASE_OFFSET_BYTES] != _NO_BASE_OFFSET:
        return Finding(ErrorCode.INVALID_RECORD, Reason.BASE_OFFSET)
    most = policy.max_message_bytes
    if most is not None and end - start > most:
        return Finding(ErrorCode.MESSAGE_TOO_LARGE, Reason.BATCH_TOO_LARGE)
    if end - start < HEADER_BYTES:
        return Finding(ErrorCode.CORRUPT_MESSAGE, Reason.CRC_MISMATCH)
    batch = RecordBatch(records, start, end)
    if not has_valid_crc(records, batch):
        return Finding(ErrorCode.CORRUPT_MESSAGE, Reason.CRC_MISMATCH, records=max(batch.record_count, 0))
    if batch.attributes & CODEC_MASK > _LAST_CODEC:
        return Finding(ErrorCode.UNKNOWN_SERVER_ERROR, Reason.UNSUPPORTED_CODEC)
    return batch


def check_header(batch: RecordBatch) -> Finding | None:
    """Check the counts, control batches and sequences of a magic 2 batch (KIP-98)."""
    count = batch.record_count
    if batch.last_offset_delta + 1 <= 0 or count <= 0 or batch.last_offset_delta + 1 != count:
        return Finding(ErrorCode.INVALID_RECORD, Reason.RECORD_COUNT, records=max(count, 0))
    if batch.attributes & CONTROL:
        return Finding(ErrorCode.INVALID_RECORD, Reason.CONTROL_BATCH, records=count)
    if batch.producer_id > NO_PRODUCER_ID and batch.base_sequence < 0:
        return Finding(ErrorCode.INVALID_RECORD, Reason.MISSING_SEQUENCE, records=count)
    return None
