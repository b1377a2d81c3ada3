"""From bad records, and from payloads over a limit, to the response for their batch and its texts (KIP-467)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.records import scan
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression_budget import Allowance, Bound, OverLimit
from sluicegate.protocol.records.record_batch import LOG_APPEND_TIME, NO_TIMESTAMP, RecordBatch
from sluicegate.validation import wording
from sluicegate.validation.timestamps import TimeWindow, as_long
from sluicegate.validation.verdict import BadRecord, Reason, Rejected

# Described even where no record error can be listed any more, because the batch's message shows them.
TEXTS_AT_LEAST = wording.FIRST_SHOWN
DESCRIBED_WORK = 4096
"""What the text about one bad record costs, in bytes of work."""


def reject_records(
    bad: Sequence[BadRecord], bad_count: int, first_time: Reason | None, records: int, allowance: Allowance
) -> Rejected:
    """The rejection of a batch of `records` records, `bad_count` of them bad, `bad` being the first of those.

    `first_time` is what is wrong with the first bad time: one makes it INVALID_TIMESTAMP, whatever else is bad.
    """
    if first_time is not None:
        code, message, reason = ErrorCode.INVALID_TIMESTAMP, wording.INVALID_TIMESTAMPS, first_time
    else:
        code, reason = ErrorCode.INVALID_RECORD, bad[0].reason
        message = wording.invalid_records([(record.index, record.message) for record in bad], bad_count)
    listed = tuple(bad[: allowance.record_errors])
    allowance.record_errors -= len(listed)
    return Rejected(code, reason, message, listed, bad_count, records)


def over_limit(topic: str, partition: int, over: OverLimit, records: int) -> Rejected:
    """The rejection of a batch that becomes larger, or has more in it, than is allowed."""
    text = wording.over_limit(topic, partition, over)
    reason = Reason.TOO_MANY_HEADERS if over.bound is Bound.HEADERS else Reason.DECOMPRESSION_LIMIT
    return Rejected(ErrorCode.INVALID_RECORD, reason, text, records=records, limit=over.bound.value)


Finding = tuple[int, int, int, int, int, int]
"""(index, reason, timestamp delta, offset delta, key size, value size), as `scan_records` gives it."""


@dataclass(slots=True)
class RecordErrors:
    """Describes the bad records of one magic 2 batch. `window` is None where the broker sets the time itself."""

    topic: str
    partition: int
    batch: RecordBatch
    window: TimeWindow | None

    def describe(self, finding: Finding) -> BadRecord:
        """The rejected record behind a finding."""
        index, reason, delta, offset_delta, key_size, value_size = finding
        claimed = _time_of_all(self.batch)
        timestamp = claimed if claimed is not None else as_long(self.batch.base_timestamp + delta)
        offset = self.batch.base_offset + offset_delta
        if reason == scan.NULL_KEY:
            text = wording.key_missing(self.topic, self.partition)
            return BadRecord(index, timestamp, Reason.NULL_KEY, text)
        breach = self.window.breach(timestamp) if self.window is not None else None
        if breach is not None and self.window is not None:
            text = wording.timestamp_out_of_range(timestamp, offset, self.window.earliest, self.window.latest)
            return BadRecord(index, timestamp, breach, wording.diagnosed(text, timestamp, self.window.now_ms))
        render = wording.default_record if self.batch.codec_id == Codec.NONE else wording.partial_record
        text = wording.log_append_time_claimed(render(offset, timestamp, key_size, value_size))
        return BadRecord(index, timestamp, Reason.TIMESTAMP_TYPE, text)


def what_to_look_for(batch: RecordBatch, window: TimeWindow | None, compacted: bool) -> int:
    """What the scan has to look for in a batch. `window` is None where the broker sets the time itself."""
    keys = scan.NULL_KEY if compacted else 0
    claimed = _time_of_all(batch)
    if claimed is None:
        return keys | (scan.OUT_OF_WINDOW if window is not None else 0)
    if window is None or claimed == NO_TIMESTAMP or window.breach(claimed) is not None:
        return keys | scan.EVERY_RECORD
    return keys


def _time_of_all(batch: RecordBatch) -> int | None:
    """The one time of every record when the batch claims LogAppendTime: the header's maximum."""
    return batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
