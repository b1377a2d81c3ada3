"""Computes how a broker's own meters count a rejected batch (KIP-467).

`tests/conformance/test_broker_meters.py` compares the results with real brokers, batch by batch.
"""

from enum import StrEnum

from sluicegate.protocol.errors import ErrorCode
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.verdict import FaultStage, Finding, Reason


class BrokerMeter(StrEnum):
    """A broker's meters of bad records, by the names that a JMX exporter gives them."""

    NO_KEY = "nokeycompactedtopicrecords"
    MAGIC = "invalidmagicnumberrecords"
    CRC = "invalidmessagecrcrecords"
    SEQUENCE = "invalidoffsetorsequencerecords"


# Meters that a broker marks once per batch.
_BY_BATCH = {
    Reason.UNSUPPORTED_MAGIC: BrokerMeter.MAGIC,
    Reason.CRC_MISMATCH: BrokerMeter.CRC,
    Reason.RECORD_COUNT: BrokerMeter.SEQUENCE,
    Reason.CONTROL_BATCH: BrokerMeter.SEQUENCE,
    Reason.MISSING_SEQUENCE: BrokerMeter.SEQUENCE,
}
# Meters that a broker marks once per record.
_BY_RECORD = {Reason.NULL_KEY: BrokerMeter.NO_KEY, Reason.INNER_MAGIC: BrokerMeter.MAGIC}
_MARKING = frozenset({*_BY_BATCH, *_BY_RECORD})
_NO_MARKS: dict[BrokerMeter, int] = {}
# Module constants, because looking up an enum member takes longer than comparing it.
_LOG, _INVALID_RECORD, _CORRUPT_MESSAGE = FaultStage.LOG, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE
_MAGIC, _CRC, _TOO_LARGE = Reason.UNSUPPORTED_MAGIC, Reason.CRC_MISMATCH, Reason.BATCH_TOO_LARGE
_OUTAGE, _SCHEMA = Reason.DEPENDENCY_UNAVAILABLE, Reason.SCHEMA_UNUSABLE


def marks_of(finding: Finding, policy: TopicPolicy) -> dict[BrokerMeter, int]:
    """Return how often a broker marks each meter for a rejected batch of a topic with this policy.

    The reasons of unlisted bad records are unknown, unless all bad records have the same reason.
    """
    reason = finding.reason
    if reason not in _MARKING and not policy.compacted:
        return _NO_MARKS  # with bad timestamps, there may be thousands of bad records
    if not _is_seen_by_the_log(finding):
        return _NO_MARKS
    meter = _BY_BATCH.get(reason)
    if meter is not None:
        return {meter: 1}
    marks: dict[BrokerMeter, int] = {}
    for record in finding.bad_records:
        meter = _BY_RECORD.get(record.reason)
        if meter is not None:
            marks[meter] = marks.get(meter, 0) + 1
    meter = _BY_RECORD.get(reason)
    # Bad timestamps were handled above. If there are two kinds of bad records, only the listed ones count.
    if meter is not None and len(marks) < 2:
        marks[meter] = finding.bad_count
    return marks


def has_failed(finding: Finding) -> bool:
    """Return whether a broker counts this rejection as a failed Produce request. Expected errors do not count."""
    reason = finding.reason
    is_expected = reason is _CRC or reason in (_TOO_LARGE, _OUTAGE, _SCHEMA)
    return not is_expected and _is_seen_by_the_log(finding)


def _is_seen_by_the_log(finding: Finding) -> bool:
    """Return whether a broker marks meters. It marks none if it cannot find the batch boundaries."""
    reason = finding.reason
    if reason is _CRC:
        return finding.code is _CORRUPT_MESSAGE
    return finding.stage is _LOG and (reason is not _MAGIC or finding.code is _INVALID_RECORD)
