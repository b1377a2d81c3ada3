"""What a broker's own meters would count for a rejection (KIP-467), as brokers were seen to count it, batch by batch
(`tests/conformance/test_broker_meters.py`).
"""

from enum import StrEnum

from sluicegate.protocol.errors import ErrorCode
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.verdict import Reason, Rejected, Stage


class Meter(StrEnum):
    """One of a broker's meters of bad records, as a JMX exporter names it."""

    NO_KEY = "nokeycompactedtopicrecords"
    MAGIC = "invalidmagicnumberrecords"
    CRC = "invalidmessagecrcrecords"
    SEQUENCE = "invalidoffsetorsequencerecords"


# Marked once for a batch.
_BY_BATCH = {
    Reason.MAGIC: Meter.MAGIC,
    Reason.CRC: Meter.CRC,
    Reason.COUNT: Meter.SEQUENCE,
    Reason.CONTROL_BATCH: Meter.SEQUENCE,
    Reason.SEQUENCE: Meter.SEQUENCE,
}
# Marked for each record.
_BY_RECORD = {Reason.NULL_KEY: Meter.NO_KEY, Reason.INNER_MAGIC: Meter.MAGIC}
_MARKING = frozenset({*_BY_BATCH, *_BY_RECORD})
_NO_MARKS: dict[Meter, int] = {}
# Named here, because looking an enum's member up takes longer than the comparison.
_LOG, _INVALID_RECORD, _CORRUPT_MESSAGE = Stage.LOG, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE
_MAGIC, _CRC, _TOO_LARGE = Reason.MAGIC, Reason.CRC, Reason.TOO_LARGE
_OUTAGE, _SCHEMA = Reason.OUTAGE, Reason.SCHEMA


def marks_of(rejected: Rejected, policy: TopicPolicy) -> dict[Meter, int]:
    """How often a broker marks each meter for a batch of a topic with that policy, as far as is known: of bad records
    only those that are listed tell what is wrong with each, unless all are bad for one reason.
    """
    reason = rejected.reason
    if reason not in _MARKING and not policy.compacted:
        return _NO_MARKS  # there may be thousands of records with bad times
    if not _is_seen_by_the_log(rejected):
        return _NO_MARKS
    meter = _BY_BATCH.get(reason)
    if meter is not None:
        return {meter: 1}
    marks: dict[Meter, int] = {}
    for record in rejected.bad_records:
        meter = _BY_RECORD.get(record.reason)
        if meter is not None:
            marks[meter] = marks.get(meter, 0) + 1
    meter = _BY_RECORD.get(reason)
    if meter is not None and len(marks) < 2:  # without a bad time; two kinds beside each other stay as listed
        marks[meter] = rejected.bad_count
    return marks


def has_failed(rejected: Rejected) -> bool:
    """Whether a broker marks a failed Produce request for a batch that is rejected like this: not for what it takes for
    an error that it expects.
    """
    reason = rejected.reason
    is_expected = reason is _CRC or reason in (_TOO_LARGE, _OUTAGE, _SCHEMA)
    return not is_expected and _is_seen_by_the_log(rejected)


def _is_seen_by_the_log(rejected: Rejected) -> bool:
    """Whether a broker comes so far as to mark anything: not where it cannot tell where batches begin and end."""
    reason = rejected.reason
    if reason is _CRC:
        return rejected.code is _CORRUPT_MESSAGE
    return rejected.stage is _LOG and (reason is not _MAGIC or rejected.code is _INVALID_RECORD)
