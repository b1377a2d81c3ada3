"""Reports every validation: counts it, and writes events and log lines for violations."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.events.violation_event import (
    ClientDetails,
    EventNumbering,
    Rehearsal,
    client_details,
    holder_of,
    violation,
)
from sluicegate.proxy.reporting.events.violation_writer import ViolationSink
from sluicegate.proxy.reporting.logs.validation_lines import ValidationLines
from sluicegate.proxy.reporting.metrics.batch_events import BatchEvent
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.reporting.metrics.topic_labels import TopicLabels
from sluicegate.proxy.reporting.metrics.validation_counts import ValidationCounts
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.reports import BatchTraffic
from sluicegate.validation.requests.name_pattern import OwnedClients
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.timestamps import FAR_AHEAD_MS, bounds_of
from sluicegate.validation.validated_request import Place, ValidatedRequest
from sluicegate.validation.verdict import Rejected


class _Finding(NamedTuple):
    """The outcome of a batch and its verdict.

    Without a `mode`: record counts of rehearsed bounds, or the verdict on an unreadable batch that was forwarded.
    `is_counted`: another finding about the batch has counted it.
    """

    mode: Mode | None
    place: Place
    found: Rejected | tuple[int, ...]
    is_counted: bool = False


# Module constants: looking up an enum member takes longer than the comparison.
_REJECT, _OBSERVE, _FIX, _QUARANTINE = Mode.REJECT, Mode.OBSERVE, Mode.FIX, Mode.QUARANTINE
_COPY, _MARK = Mode.COPY, Mode.MARK
_REPORTED_AT_ONCE = 50


class Observer:
    """Never changes a verdict and never waits. A rejected partition takes a few microseconds on the event loop."""

    def __init__(
        self,
        labels: TopicLabels,
        names: dict[bytes, str],
        violations: ViolationSink | None,
        max_records: int,
        counts: ValidationCounts,
        later: Callable[[Callable[[], None]], object],
        numbering: EventNumbering,
    ) -> None:
        """`later` schedules the rest of a long report, after other work of the event loop."""
        self._labels = labels
        self._names = names
        self._violations = violations
        self._max_records = max_records
        self._later = later
        self._numbering = numbering
        self._counts = counts
        self._lines = ValidationLines(labels)

    def forwarded(self, identity: ClientIdentity, client_id: str | None, traffic: BatchTraffic) -> None:
        """Count valid batches of the fast path by client id."""
        self._counts.forwarded(identity, client_id, traffic)

    def settle_traffic(self) -> None:
        """Count the batches that the fast path has forwarded since the last call, by topic."""
        self._counts.settle_traffic()

    def validated(self, identity: ClientIdentity, request: ProduceRequest, validated: ValidatedRequest) -> None:
        """Report a validated Produce request."""
        self._counts.validated(identity, request, validated)
        for place, accepted in validated.accepted.items():
            if accepted.ahead_ms > FAR_AHEAD_MS:
                self._warn_far_ahead(identity, request.topics[place[0]].name_by(self._names), accepted.ahead_ms)
        for place, masked in validated.masked.items():
            topic = request.topics[place[0]].name_by(self._names)
            self._labels.count(BatchEvent.MASKED, topic, holder_of(identity), records=masked.count)
            self._counts.masked(masked)
        if validated.basis:
            self._report(client_details(identity), request, validated)

    def _report(self, client: ClientDetails, request: ProduceRequest, validated: ValidatedRequest) -> None:
        """Report violations in steps, so that other connections are served in between."""
        findings: list[_Finding] = []
        for place, rejected in validated.rejected.items():
            if place not in validated.to_retry:  # the producer retries it
                findings.append(_Finding(_QUARANTINE if place in validated.quarantined else _REJECT, place, rejected))
        for place, (deciding, *others) in validated.observed.items():
            if place in validated.rejected or place not in validated.to_retry:
                is_copied = validated.is_copied(place)
                findings.append(_Finding(_COPY if is_copied else _OBSERVE, place, deciding))
                findings += [
                    _Finding(_COPY, place, each)
                    if is_copied and each.broken
                    else _Finding(_OBSERVE, place, each, is_counted=True)
                    for each in others
                ]
        findings += [_Finding(_FIX, place, one.rejected) for place, one in validated.fixed.items()]
        findings += [_Finding(_MARK, place, found) for place, one in validated.marked.items() for found in one.found]
        findings += [_Finding(None, *one) for one in validated.rehearsed.items()]
        findings += [_Finding(None, *one) for one in validated.unreadable.items()]
        if len(findings) <= _REPORTED_AT_ONCE:
            self._report_some(client, request, validated, findings)
            return
        for first in range(0, len(findings), _REPORTED_AT_ONCE):
            step = partial(self._report_some, client, request, validated, findings[first : first + _REPORTED_AT_ONCE])
            if first == 0:
                step()
            else:
                self._later(step)

    def _report_some(
        self, client: ClientDetails, request: ProduceRequest, validated: ValidatedRequest, findings: Sequence[_Finding]
    ) -> None:
        for finding in findings:
            mode, place, found, _ = finding
            if not isinstance(found, Rejected):
                self._rehearsed(client, request, validated, place, found)
            elif mode is None:
                self._unreadable(client, request, validated, place, found)
            else:
                self._count(mode, client, request, validated, finding, found)
                self._rejected(mode, client, request, validated, place, found)

    def not_quarantined(self, identity: ClientIdentity, letters: DeadLetters, reason: str) -> None:
        """Report a failed quarantine write; the producer was asked to retry."""
        client = client_details(identity)
        self._labels.count(BatchEvent.QUARANTINE_FAILED, letters.source, client.holder)
        if letters.limit is not None:
            self._counts.limit_reached(letters.limit)
        self._lines.not_quarantined(client, cut(letters.source), letters, reason)

    def configure(self, names: Iterable[str]) -> None:
        """Use the topics of a new configuration as labels."""
        self._labels.configure(names)

    def counted(self) -> Counters:
        """Return a copy of the counters. Thread-safe."""
        return self._counts.counted()

    def client_owners(self, owners: tuple[OwnedClients, ...]) -> dict[str, tuple[str, str]]:
        """Return team and contact of the clients with their own series that have an owner. Thread-safe."""
        return self._counts.client_owners(owners)

    def sweep(self) -> None:
        """Write the log lines that are due; called every few seconds."""
        self._lines.sweep()

    def close(self) -> None:
        """Write all pending lines and events, before shutdown."""
        self._lines.flush()
        if self._violations is not None:
            self._violations.close()

    def _count(
        self,
        mode: Mode,
        client: ClientDetails,
        request: ProduceRequest,
        validated: ValidatedRequest,
        finding: _Finding,
        rejected: Rejected,
    ) -> None:
        name = request.topics[finding.place[0]].name_by(self._names)
        if finding.is_counted:
            self._counts.also_violated(mode, client, name, rejected)
        else:
            self._counts.rejected(mode, client, name, rejected, validated.basis[finding.place].policy)

    def _rejected(
        self,
        mode: Mode,
        client: ClientDetails,
        request: ProduceRequest,
        validated: ValidatedRequest,
        place: Place,
        rejected: Rejected,
    ) -> None:
        topic = request.topics[place[0]]
        partition = topic.partitions[place[1]].index
        basis = validated.basis[place]
        name = topic.name_by(self._names)
        if self._violations is not None:
            self._violations.write(
                violation(
                    mode,
                    client,
                    name,
                    topic.topic_id,
                    partition,
                    rejected,
                    basis,
                    self._numbering.next(),
                    self._max_records,
                )
            )
        self._lines.rejected(mode, client, _shown(name), partition, rejected, basis.now_ms)

    def _unreadable(
        self, client: ClientDetails, request: ProduceRequest, validated: ValidatedRequest, place: Place, found: Rejected
    ) -> None:
        topic = request.topics[place[0]]
        partition = topic.partitions[place[1]].index
        basis = validated.basis[place]
        name = topic.name_by(self._names)
        self._counts.unreadable(client, name, found)
        if self._violations is not None:
            origin = self._numbering.next()
            findings = (client, name, topic.topic_id, partition, found, basis, origin, self._max_records)
            self._violations.write(violation(_OBSERVE, *findings))
        self._lines.unreadable(client, _shown(name), partition, found, basis.now_ms)

    def _rehearsed(
        self,
        client: ClientDetails,
        request: ProduceRequest,
        validated: ValidatedRequest,
        place: Place,
        counts: tuple[int, ...],
    ) -> None:
        topic = request.topics[place[0]]
        partition = topic.partitions[place[1]].index
        policy, now_ms = validated.basis[place]
        assert policy.rehearsed is not None
        name = topic.name_by(self._names)
        shown = _shown(name)
        found = [(bound, count) for bound, count in zip(bounds_of(policy.rehearsed), counts, strict=True) if count]
        for bound, count in found:
            label = f"{bound.key}={bound.max_ms}"
            self._counts.rehearsed(client, name, label, count)
            self._lines.rehearsed(client, shown, partition, bound, label, count)
        if self._violations is not None:
            records = validated.records_of(place)
            place_of_records = (client, shown, topic.topic_id, partition, records)
            self._violations.write(Rehearsal(*place_of_records, tuple(found), now_ms, self._numbering.next(), policy))

    def _warn_far_ahead(self, identity: ClientIdentity, topic: str | None, ahead_ms: int) -> None:
        self._labels.count(BatchEvent.FAR_AHEAD, topic, holder_of(identity))
        self._lines.far_ahead(identity, _shown(topic), ahead_ms)


def _shown(topic: str | None) -> str | None:
    return topic if topic is None else cut(topic)
