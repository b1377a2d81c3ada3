"""Builds findings about batches of any magic, with their messages (KIP-467), from the notes of a scan or decoder.

The messages about framing (docs/framing.md) and limits are the proxy's own, because a broker has no such checks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.records import scan
from sluicegate.protocol.records.codecs.codec import Codec, Oddity
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit, PayloadLimit
from sluicegate.protocol.records.message_set import Message
from sluicegate.protocol.records.record_batch import LOG_APPEND_TIME, NO_TIMESTAMP, RecordBatch
from sluicegate.protocol.records.scan import (
    NEGATIVE_SIZE,
    OTHER_LENGTH,
    OTHER_OFFSET,
    PADDED_LENGTH,
    TOO_MANY_BITS,
    Ambiguity,
)
from sluicegate.validation import wording
from sluicegate.validation.timestamps import TimeWindow, wrapped_int64
from sluicegate.validation.verdict import BadRecord, Finding, Reason

NULL_KEY, OUT_OF_WINDOW, APPEND_TIME, OTHER_MAGIC = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class FlawedMessage:
    """A bad message: its position in the set, its flaw, and its timestamp (ms), which may be the wrapper's."""

    index: int
    flaw: int
    message: Message
    timestamp: int


@dataclass(frozen=True, slots=True)
class LegacyErrors:
    """Descriptions of a message set's bad messages. `window` is None if the broker sets timestamps."""

    topic: str
    partition: int
    window: TimeWindow | None

    def describe(self, flawed: FlawedMessage, outer: Message, base: int) -> BadRecord:
        """Return a flawed message as a bad record. `base` is added to its offset.

        `outer` determines the timestamp type.
        """
        message, timestamp = flawed.message, flawed.timestamp
        offset = base + message.offset
        if flawed.flaw == NULL_KEY:
            text = wording.key_missing(self.topic, self.partition)
            return BadRecord(flawed.index, timestamp, Reason.NULL_KEY, text)
        if flawed.flaw == OUT_OF_WINDOW and self.window is not None:
            text = wording.timestamp_out_of_range(timestamp, offset, self.window.earliest, self.window.latest)
            breach = self.window.breach(timestamp) or Reason.TIMESTAMP_TOO_OLD
            return BadRecord(
                flawed.index, timestamp, breach, wording.with_diagnosis(text, timestamp, self.window.now_ms)
            )
        claims_append_time = flawed.flaw == APPEND_TIME or (outer.is_log_append_time and message.magic > 0)
        record = wording.legacy_batch(offset, _render(message, timestamp, claims_append_time))
        if flawed.flaw == OTHER_MAGIC:
            text = wording.inner_magic(record, outer.magic, self.topic, self.partition)
            return BadRecord(flawed.index, timestamp, Reason.INNER_MAGIC, text)
        return BadRecord(flawed.index, timestamp, Reason.LOG_APPEND_TIME, wording.log_append_time_claimed(record))


def _render(message: Message, timestamp: int, claims_append_time: bool) -> str:
    """Return a message of magic 0 or 1 as a broker prints it."""
    sizes = f"key={max(message.key_size, 0)} bytes, value={max(message.value_size, 0)} bytes"
    head = f"magic={message.magic}, attributes={message.attributes}, compression=NONE, crc={message.crc}"
    if message.magic == 0:
        return f"Record({head}, {sizes})"
    kind = "LogAppendTime" if claims_append_time else "CreateTime"
    return f"Record({head}, {kind}={timestamp}, {sizes})"


# The batch's error message quotes this many record errors, so they are described even if no more may be listed.
TEXTS_AT_LEAST = wording.FIRST_SHOWN
DESCRIBED_WORK = 4096
"""The cost of describing one bad record, in bytes of work."""


def finding_about_records(
    bad: Sequence[BadRecord], bad_count: int, first_time: Reason | None, records: int, budget: DecompressionBudget
) -> Finding:
    """Return the finding about a batch of `records` records, `bad_count` of them bad.

    `bad` contains the first bad records. `first_time` is the violation of the first record with a bad timestamp; None
    if there is none. A single bad timestamp makes the error INVALID_TIMESTAMP.
    """
    if first_time is not None:
        code, message, reason = ErrorCode.INVALID_TIMESTAMP, wording.INVALID_TIMESTAMPS, first_time
    else:
        code, reason = ErrorCode.INVALID_RECORD, bad[0].reason
        message = wording.invalid_records([(record.index, record.message) for record in bad], bad_count)
    listed = tuple(bad[: budget.record_errors])
    budget.record_errors -= len(listed)
    return Finding(code, reason, message, listed, bad_count, records)


def finding_over_limit(topic: str, partition: int, over: OverLimit, records: int) -> Finding:
    """Return the finding about a batch that exceeds a limit."""
    text = wording.over_limit(topic, partition, over)
    reason = Reason.TOO_MANY_HEADERS if over.bound is PayloadLimit.HEADERS else Reason.DECOMPRESSION_LIMIT
    return Finding(ErrorCode.INVALID_RECORD, reason, text, records=records, limit=over.bound.value)


FlawedRecord = tuple[int, int, int, int, int, int]
"""(index, reason, timestamp delta, offset delta, key size, value size), as `scan_records` returns them."""


@dataclass(slots=True)
class RecordErrors:
    """Descriptions of a magic 2 batch's bad records. `window` is None if the broker sets timestamps."""

    topic: str
    partition: int
    batch: RecordBatch
    window: TimeWindow | None

    def describe(self, flawed: FlawedRecord) -> BadRecord:
        """Return a flawed record as a bad record."""
        index, reason, delta, offset_delta, key_size, value_size = flawed
        claimed = _time_of_all(self.batch)
        timestamp = claimed if claimed is not None else wrapped_int64(self.batch.base_timestamp + delta)
        offset = self.batch.base_offset + offset_delta
        if reason == scan.NULL_KEY:
            text = wording.key_missing(self.topic, self.partition)
            return BadRecord(index, timestamp, Reason.NULL_KEY, text)
        breach = self.window.breach(timestamp) if self.window is not None else None
        if breach is not None and self.window is not None:
            text = wording.timestamp_out_of_range(timestamp, offset, self.window.earliest, self.window.latest)
            return BadRecord(index, timestamp, breach, wording.with_diagnosis(text, timestamp, self.window.now_ms))
        render = wording.default_record if self.batch.codec_id == Codec.NONE else wording.partial_record
        text = wording.log_append_time_claimed(render(offset, timestamp, key_size, value_size))
        return BadRecord(index, timestamp, Reason.LOG_APPEND_TIME, text)


def scan_checks_of(batch: RecordBatch, window: TimeWindow | None, compacted: bool) -> int:
    """Return the checks for the scan of a batch. `window` is None if the broker sets timestamps."""
    keys = scan.NULL_KEY if compacted else 0
    claimed = _time_of_all(batch)
    if claimed is None:
        return keys | (scan.OUT_OF_WINDOW if window is not None else 0)
    if window is None or claimed == NO_TIMESTAMP or window.breach(claimed) is not None:
        return keys | scan.EVERY_RECORD
    return keys


def _time_of_all(batch: RecordBatch) -> int | None:
    """Return the timestamp (ms) that all records share if the batch claims LogAppendTime; None for other batches.

    It is the header's maximum timestamp.
    """
    return batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None


_FLAWS = {
    OTHER_LENGTH: "has a length field of {stated} bytes, but its fields end after {expected}",
    OTHER_OFFSET: "has the offset {stated} instead of {expected}",
    NEGATIVE_SIZE: "has a size of {stated}, but the minimum is {expected} (null)",
    TOO_MANY_BITS: "has a number with more bits than its type",
    PADDED_LENGTH: "encodes its length in more bytes than necessary",
}
_FRAMING_ADVICE = "The proxy in front of the cluster rejects it (framing: safe): fix the producer's encoder."
_ENDS = {
    Oddity.HIDDEN_DATA: "has an empty raw block, which ends the data for brokers, but not for all clients",
    Oddity.TRAILING_BYTES: "has bytes after its {codec} data, which brokers ignore and some clients cannot read",
    Oddity.UNVERIFIED: "has {codec} data whose header or checksum brokers do not verify, and which some clients "
    "cannot read",
}


def finding_about_ambiguity(topic: str, partition: int, index: int, found: Ambiguity, records: int) -> Finding:
    """Return the finding about the first record (`index`) that clients and brokers read differently."""
    flaw = _FLAWS[found.why].format(stated=found.stated, expected=found.expected)
    text = (
        f"Record {index} of the batch for {topic}-{partition} {flaw}: brokers store the record, but clients read other "
        f"records, or stop there. {_FRAMING_ADVICE}"
    )
    return Finding(ErrorCode.INVALID_RECORD, Reason.AMBIGUOUS_FRAMING, text, records=records)


def finding_about_odd_payload(topic: str, partition: int, codec_id: int, oddity: Oddity, records: int) -> Finding:
    """Return the finding about a batch with odd compressed data."""
    flaw = _ENDS[oddity].format(codec=Codec(codec_id).name.lower())
    reason = Reason.AMBIGUOUS_FRAMING if oddity is Oddity.HIDDEN_DATA else Reason.UNREADABLE_FRAMING
    return Finding(
        ErrorCode.INVALID_RECORD,
        reason,
        f"The batch for {topic}-{partition} {flaw}. {_FRAMING_ADVICE}",
        records=records,
    )
