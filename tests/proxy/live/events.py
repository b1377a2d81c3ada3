"""Builds violation events like those of the proxy."""

from sluicegate.protocol.errors import ErrorCode
from sluicegate.proxy.reporting.events.violation_event import EventNumbering, ViolationEvent, violation_event
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.session.produce.batch_outcome import BatchOutcome, ReportedFinding
from sluicegate.validation.outcome import Change, Copies, Outcome
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.validated_request import ValidationBasis
from sluicegate.validation.verdict import BadRecord, Beginning, Finding, Reason, RecordSample

NOW = 1_800_000_000_000
SECRET = b"what-a-record-holds"
_CHANGES = {Mode.FIX: (Change.FIXED,), Mode.MARK: (Change.MARKED,)}
_COPIES = {Mode.QUARANTINE: Copies.QUARANTINED, Mode.COPY: Copies.COPIED}


def rejected_event(
    client_id: str | None = "billing",
    topic: str | None = "payments",
    reason: Reason = Reason.TIMESTAMP_IN_FUTURE,
    now_ms: int = NOW,
    timestamp: int = NOW * 1_000_000,
    mode: Mode = Mode.REJECT,
    peer: str = "192.0.2.1:5",
) -> ViolationEvent:
    """Return the event of a batch with one bad record."""
    shown = RecordSample(Beginning(SECRET, 19), Beginning(SECRET, 19))
    bad = BadRecord(3, timestamp, reason, "its text", contents=shown)
    verdict = Finding(ErrorCode.INVALID_TIMESTAMP, reason, "its message", (bad,) * 5, 5, 8)
    who = ClientDetails(peer, client_id, "lib", "1.0", None)
    is_kept_out = mode in (Mode.REJECT, Mode.QUARANTINE)
    batch = BatchOutcome(
        topic,
        None,
        0,
        8,
        100,
        Outcome.REJECTED if is_kept_out else Outcome.ACCEPTED,
        ErrorCode.INVALID_TIMESTAMP if is_kept_out else ErrorCode.NONE,
        changes=_CHANGES.get(mode, ()),
        basis=ValidationBasis(TopicPolicy(), now_ms),
    )
    return violation_event(
        who, batch, ReportedFinding(mode, verdict, _COPIES.get(mode)), EventNumbering("proxy:9092").next(), 10
    )
