"""A validated Produce request's batches, until their outcome is known.

These objects do not refer to the request's bytes, so that a large request is freed while the broker works.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from sluicegate.protocol.errors import RETRIABLE_CODES, ErrorCode
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.record_batch import base_time_of
from sluicegate.proxy.responses.produce_responses import ClientError, PartitionKey, key_of
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.session.produce.batch_outcome import BatchOutcome, ReportedFinding, RequestOutcome, outcome_of
from sluicegate.validation.broker_meters import marks_of
from sluicegate.validation.outcome import Change, Copies, Outcome, Waiver
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.validated_request import Place, ValidatedRequest
from sluicegate.validation.verdict import Finding

# The proxy's own errors after which the broker may accept the same batch when it is retried. A corrupt batch stays
# corrupt.
_SENT_AGAIN = RETRIABLE_CODES - {ErrorCode.CORRUPT_MESSAGE}
_COPIES = {Mode.QUARANTINE: Copies.QUARANTINED, Mode.COPY: Copies.COPIED}
_BYTES_OF_A_FINDING = 400
_BYTES_OF_A_RECORD = 350
# These are module constants, because looking up an enum member takes longer than the comparison.
_ACCEPTED, _REJECTED, _RESEND, _UNKNOWN = Outcome.ACCEPTED, Outcome.REJECTED, Outcome.RESEND, Outcome.UNKNOWN


class _Awaited(NamedTuple):
    """One batch. If `is_withheld`, the broker gets a stand-in instead of the batch."""

    partition_key: PartitionKey
    batch: BatchOutcome
    is_withheld: bool


class AwaitedBatches:
    """One request's batches. `kept_bytes` is the estimated memory of their findings."""

    def __init__(
        self,
        client: ClientDetails,
        request: ProduceRequest,
        validated: ValidatedRequest,
        names: Mapping[bytes, str],
        sent_ms: int,
        proxy_seconds: float,
        most_records: int,
        converted_from: int | None = None,
    ) -> None:
        """`names` maps topic ids to topic names. `sent_ms` and `proxy_seconds` are explained at `RequestOutcome`.

        `most_records` limits how many of a batch's bad records appear in events. `converted_from` is the version of the
        client's request, if `request` was converted from it.
        """
        self._client = client
        self._acks = request.acks
        self._version = request.version if converted_from is None else converted_from
        self._is_converted = converted_from is not None
        self._size = len(request.frame)
        self._topics = tuple(topic.name_by(names) for topic in request.topics)
        self._sent_ms = sent_ms
        self._proxy_seconds = proxy_seconds
        self._awaited = [
            _awaited(request, validated, (t, p), self._topics[t], sent_ms, most_records)
            for t, topic in enumerate(request.topics)
            for p in range(len(topic.partitions))
        ]
        self.kept_bytes = sum(_size_of(one.batch) for one in self._awaited if one.batch.findings)

    def settled(self, errors: Mapping[PartitionKey, ClientError], upstream_seconds: float | None) -> RequestOutcome:
        """Return the request's outcome.

        `errors` contains the errors that the client receives. A partition that is missing there gets no response.
        `upstream_seconds` is the broker's response time, or None without a response.
        """
        return RequestOutcome(
            self._client,
            self._acks,
            self._version,
            self._size,
            self._topics,
            tuple(_settled(one, errors.get(one.partition_key)) for one in self._awaited),
            self._sent_ms,
            self._proxy_seconds,
            upstream_seconds,
            self._is_converted,
        )


def _settled(one: _Awaited, error: ClientError | None) -> BatchOutcome:
    if error is None:
        return one.batch._replace(outcome=_REJECTED if one.is_withheld else _UNKNOWN)
    code = error.code
    if error.is_ours:
        outcome = _RESEND if code in _SENT_AGAIN else _REJECTED
    else:
        outcome = outcome_of(code)
        if outcome is _ACCEPTED and one.is_withheld:  # the partition's response is the response to the stand-in
            return one.batch._replace(outcome=_REJECTED)
    return one.batch._replace(outcome=outcome, error=code)


def _awaited(
    request: ProduceRequest,
    validated: ValidatedRequest,
    place: Place,
    name: str | None,
    now_ms: int,
    most_records: int,
) -> _Awaited:
    topic = request.topics[place[0]]
    partition = topic.partitions[place[1]]
    partition_key = PartitionKey(key_of(topic), partition.index)
    size = max(partition.records_end - partition.records_at, 0)
    accepted, rejected = validated.accepted.get(place), validated.rejected.get(place)
    is_withheld = rejected is not None or place in validated.to_retry
    if accepted is not None and place not in validated.basis and place not in validated.masked:
        batch = BatchOutcome(
            name,
            topic.topic_id,
            partition.index,
            accepted.records,
            size,
            ahead_ms=accepted.ahead_ms,
            age_ms=_age(request, place, now_ms),
        )
        return _Awaited(partition_key, batch, is_withheld)
    findings = _findings(validated, place, most_records)
    basis = validated.basis.get(place)
    masked = validated.masked.get(place)
    batch = BatchOutcome(
        name,
        topic.topic_id,
        partition.index,
        0 if place in validated.waived else validated.records_of(place),
        size,
        findings=findings,
        changes=_changes(validated, place),
        waiver=_waiver(validated, place, findings),
        basis=basis,
        ahead_ms=None if accepted is None else accepted.ahead_ms,
        age_ms=None if accepted is None else _age(request, place, now_ms),
        masked=() if masked is None else masked.rules,
        masked_records=0 if masked is None else masked.count,
        rehearsed=validated.rehearsed.get(place, ()),
        unreadable=validated.unreadable.get(place),
    )
    return _Awaited(partition_key, batch, is_withheld)


def _age(request: ProduceRequest, place: Place, now_ms: int) -> int | None:
    base = base_time_of(request.records(*place))
    return None if base is None else now_ms - base


def _findings(validated: ValidatedRequest, place: Place, most_records: int) -> tuple[ReportedFinding, ...]:
    """Return the findings about the batch at `place`. The first one is why the batch is, or would be, rejected."""
    findings: list[ReportedFinding] = []
    rejected = validated.rejected.get(place)
    if rejected is not None:
        policy = validated.basis[place].policy
        mode = Mode.QUARANTINE if place in validated.to_quarantine else Mode.REJECT
        one = _finding(validated, place, mode, rejected, most_records)
        is_listed = len(rejected.bad_records) >= rejected.bad_count
        findings.append(one._replace(is_listed=is_listed, marks=marks_of(rejected, policy)))
    is_copied = rejected is None and place in validated.to_quarantine
    for position, found in enumerate(validated.observed.get(place, ())):
        has_copies = is_copied and (position == 0 or bool(found.broken))
        one = _finding(validated, place, Mode.COPY if has_copies else Mode.OBSERVE, found, most_records)
        findings.append(one._replace(is_further=position > 0 and not has_copies))
    fixed = validated.fixed.get(place)
    if fixed is not None:
        findings.append(ReportedFinding(Mode.FIX, _shortened(fixed.finding, most_records)))
    marked = validated.marked.get(place)
    if marked is not None:
        findings += (ReportedFinding(Mode.MARK, _shortened(found, most_records)) for found in marked.findings)
    return tuple(findings)


def _finding(
    validated: ValidatedRequest, place: Place, mode: Mode, finding: Finding, most_records: int
) -> ReportedFinding:
    finding = _shortened(finding, most_records)
    copies = _COPIES.get(mode)
    if copies is None:
        return ReportedFinding(mode, finding)
    reason = validated.to_retry.get(place)
    if reason is None:
        return ReportedFinding(mode, finding, copies if place in validated.quarantined else None)
    where = validated.basis[place].policy.dead_letters
    message = f"its bad records cannot be stored in dead-letter topic {where}: {reason}"
    return ReportedFinding(mode, replace(finding, message=message), Copies.NOT_STORED)


def _shortened(finding: Finding, most_records: int) -> Finding:
    """Return the finding without the parts that only the response and dead letters need."""
    if finding.broken is None and len(finding.bad_records) <= most_records:
        return finding
    return replace(finding, broken=None, bad_records=finding.bad_records[:most_records])


def _changes(validated: ValidatedRequest, place: Place) -> tuple[Change, ...]:
    changes = []
    if place in validated.masked:
        changes.append(Change.MASKED)
    if place in validated.fixed:
        changes.append(Change.FIXED)
    if validated.is_marked(place):
        changes.append(Change.MARKED)
    return tuple(changes)


def _waiver(validated: ValidatedRequest, place: Place, findings: tuple[ReportedFinding, ...]) -> Waiver | None:
    waived = validated.waived.get(place)
    if waived is not None or not findings:
        return waived
    if validated.basis[place].policy.origins.is_suspended:
        return Waiver.SUSPENDED
    exceeds = any(reported.finding.limit is not None for reported in findings if reported.mode is Mode.OBSERVE)
    return Waiver.OVER_BUDGET if exceeds else None


def _size_of(batch: BatchOutcome) -> int:
    return sum(
        _BYTES_OF_A_FINDING + _BYTES_OF_A_RECORD * len(finding.bad_records) + len(finding.message or "")
        for finding in (reported.finding for reported in batch.findings)
    )
