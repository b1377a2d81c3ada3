"""From bad records to what is answered for their batch."""

from collections.abc import Sequence

from protocol.errors import ErrorCode
from validation import wording
from validation.verdict import BadRecord, Reason, Refused

_TIME_REASONS = frozenset({Reason.TIMESTAMP_BEFORE, Reason.TIMESTAMP_AFTER, Reason.TIMESTAMP_TYPE})


def refuse_records(bad: Sequence[BadRecord], records: int) -> Refused:
    """The refusal of a batch of `records` records: one bad time makes it INVALID_TIMESTAMP, whatever else is bad."""
    first_time = next((record for record in bad if record.reason in _TIME_REASONS), None)
    if first_time is not None:
        code, message, reason = ErrorCode.INVALID_TIMESTAMP, wording.INVALID_TIMESTAMPS, first_time.reason
    else:
        code, reason = ErrorCode.INVALID_RECORD, bad[0].reason
        message = wording.invalid_records([(record.index, record.message) for record in bad])
    return Refused(code, reason, message, tuple(bad), records)
