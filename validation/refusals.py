"""From bad records, and from payloads that became too large, to what is answered for their batch."""

from collections.abc import Sequence

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.records.codecs.decompression_budget import Allowance, Bound, OverLimit
from sluicegate.validation import wording
from sluicegate.validation.verdict import BadRecord, Reason, Refused

# Described even where no record error can be listed any more, because the batch's message shows them.
TEXTS_AT_LEAST = wording.FIRST_SHOWN
DESCRIBED_WORK = 4096
"""What the text about one bad record costs, in bytes of work."""


def refuse_records(
    bad: Sequence[BadRecord], bad_count: int, first_time: Reason | None, records: int, allowance: Allowance
) -> Refused:
    """The refusal of a batch of `records` records, `bad_count` of them bad, `bad` being the first of those.

    `first_time` is what is wrong with the first bad time: one makes it INVALID_TIMESTAMP, whatever else is bad.
    """
    if first_time is not None:
        code, message, reason = ErrorCode.INVALID_TIMESTAMP, wording.INVALID_TIMESTAMPS, first_time
    else:
        code, reason = ErrorCode.INVALID_RECORD, bad[0].reason
        message = wording.invalid_records([(record.index, record.message) for record in bad], bad_count)
    listed = tuple(bad[: allowance.record_errors])
    allowance.record_errors -= len(listed)
    return Refused(code, reason, message, listed, bad_count, records)


def over_limit(topic: str, partition: int, over: OverLimit, records: int) -> Refused:
    """The refusal of a batch that becomes larger, or has more in it, than is allowed."""
    text = wording.over_limit(topic, partition, over)
    reason = Reason.TOO_MANY_HEADERS if over.bound is Bound.HEADERS else Reason.DECOMPRESSION_LIMIT
    return Refused(ErrorCode.INVALID_RECORD, reason, text, records=records, limit=over.bound.value)
