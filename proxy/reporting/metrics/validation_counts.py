"""Counts validations by outcome, and violations by topic, rule and client."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Protocol

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import ERROR_NAMES, ErrorCode
from sluicegate.proxy.reporting.metrics.batch_events import BatchEvent
from sluicegate.proxy.reporting.metrics.counters import OTHER, Counters
from sluicegate.proxy.reporting.metrics.topic_labels import MAX_TOPICS, TopicLabels
from sluicegate.proxy.reporting.metrics.violation_labels import FairLabels, RuleLabels, ViolationLabels, rules_of
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.session.produce.batch_outcome import BatchOutcome, ReportedFinding, RequestOutcome
from sluicegate.validation.outcome import Copies, Outcome, Waiver
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.requests.name_pattern import OwnedClients
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.timestamps import IN_FUTURE_MS, bounds_of

if TYPE_CHECKING:
    from sluicegate.proxy.fastpath.fast_path import PathCounts
    from sluicegate.validation.ordinary import OrdinaryRequests

_PRODUCE = APIS[ApiKey.PRODUCE].name
_EVENTS = {
    Mode.OBSERVE: BatchEvent.OBSERVED,
    Mode.FIX: BatchEvent.FIXED,
    Mode.COPY: BatchEvent.COPIED,
    Mode.MARK: BatchEvent.MARKED,
}
_MODES = {mode: mode.value for mode in Mode}  # faster than Enum.value
_ENFORCED = frozenset({Mode.REJECT, Mode.QUARANTINE})
NO_RESPONSE = "none"
"""The value of the label `error` for a rejected batch whose client received no response."""
_RECORD_ERRORS = "limits.max_record_errors"
_ACCEPTED, _UNKNOWN = Outcome.ACCEPTED, Outcome.UNKNOWN
_NAME_OF = {code: code.name for code in ErrorCode}  # faster than Enum.name


class TrafficCounts(Protocol):
    """Counts validated batches with their records and bytes."""

    def sent_by(self, client_id: str | None, batches: int, records: int, size: int, /) -> None:
        """Count batches of a client."""

    def sent_to(self, topic: str, batches: int, records: int, size: int, /) -> None:
        """Count batches of a topic."""


class ValidationCounts:
    """Adds to `counters`. `traffic` counts the same batches for the web UI.

    `ordinary` contains the valid batches of the fast path, and `paths` the requests by path. Both are None if there is
    no fast path.
    """

    def __init__(
        self,
        counters: Counters,
        labels: TopicLabels,
        traffic: TrafficCounts,
        ordinary: "OrdinaryRequests | None" = None,
        paths: "PathCounts | None" = None,
        max_topics: int = MAX_TOPICS,
    ) -> None:
        self._counters = counters
        self._labels = labels
        self._traffic = traffic
        self._ordinary = ordinary
        self._paths = paths
        self._clients = FairLabels(partial(self._fold, counters.rehearsed_clients))
        self._senders = FairLabels(partial(self._fold, counters.client_batches))
        self._converted = FairLabels(partial(self._fold, counters.converted_requests))
        self._topics = FairLabels(partial(self._fold, counters.topic_batches), max_topics)
        self._violations = ViolationLabels(counters, labels.folding)
        self._rules = RuleLabels(counters)

    def settle_traffic(self) -> None:
        """Count the batches that the fast path has forwarded or settled since the last call, by topic and by client.

        The slow path has already validated a batch of each of these topics, so their labels are decided.
        """
        if self._ordinary is None:
            return
        for tally in self._ordinary.take_topics():
            batches, records, size, accepted, unknown = tally.take()
            name = tally.name or ""
            self._add(self._counters.topic_batches, name if name in self._topics else OTHER, accepted, unknown)
            if batches:
                self._traffic.sent_to(name, batches, records, size)
        for tally in self._ordinary.take_senders():
            batches, records, size, accepted, unknown = tally.take()
            if accepted or unknown:
                label = self._senders.label(tally.name, tally.holder or "")
                self._add(self._counters.client_batches, label, accepted, unknown)
            if batches:
                self._traffic.sent_by(tally.name, batches, records, size)

    @staticmethod
    def _add(counts: Counter[tuple[str, str]], label: str, accepted: int, unknown: int) -> None:
        if accepted:
            counts[label, _ACCEPTED] += accepted
        if unknown:
            counts[label, _UNKNOWN] += unknown

    def not_accepted(self, client_id: str | None, holder: str, topic: str | None, outcome: Outcome) -> None:
        """Count a batch of the fast path that the broker has not accepted."""
        self._count_outcome(client_id, holder, topic, outcome)

    def client_owners(self, owners: tuple[OwnedClients, ...]) -> dict[str, tuple[str, str]]:
        """Return the team and contact of each client that has its own series and an owner. Thread-safe."""
        return self._senders.owned_by(owners)

    def request_settled(self, request: RequestOutcome) -> None:
        """Count a Produce request on the slow path."""
        self._counters.produce_requests += 1
        if request.is_converted:
            label = self._converted.label(request.client.client_id, request.client.holder)
            self._counters.converted_requests[label, f"v{request.version}"] += 1

    def batch_settled(self, client: ClientDetails, batch: BatchOutcome) -> None:
        """Count a batch on the slow path, with its findings."""
        if not batch.is_validated:
            self._count_unvalidated(batch)
            return
        counters, holder = self._counters, client.holder
        if batch.ahead_ms is not None:
            counters.accepted_partitions += 1
            counters.accepted_records += batch.records
        counters.validated_records += batch.records
        counters.validated_bytes += batch.size
        self._count_outcome(client.client_id, holder, batch.topic, batch.outcome)
        self._traffic.sent_by(client.client_id, 1, batch.records, batch.size)
        if batch.topic is not None:
            self._traffic.sent_to(batch.topic, 1, batch.records, batch.size)
        if batch.ahead_ms is not None and batch.ahead_ms > IN_FUTURE_MS:
            self._labels.count(BatchEvent.FUTURE_TIMESTAMP, batch.topic, holder)
        if batch.masked_records:
            self._labels.count(BatchEvent.MASKED, batch.topic, holder, records=batch.masked_records)
            self._rules.count(batch.outcome, batch.masked)
        if batch.basis is not None:
            self._count_findings(client, batch, batch.basis.policy)

    def _count_unvalidated(self, batch: BatchOutcome) -> None:
        if batch.waiver is Waiver.EXEMPT:
            self._counters.exempt_partitions += 1
        elif batch.waiver is Waiver.CHECKS_NONE:
            self._counters.unchecked_partitions += 1

    def _count_findings(self, client: ClientDetails, batch: BatchOutcome, policy: TopicPolicy) -> None:
        for reported in batch.findings:
            self._violated(client, batch, reported)
        if batch.unreadable is not None:
            finding, error = batch.unreadable, _NAME_OF[batch.unreadable.code]
            label = self._labels.count(
                BatchEvent.UNREADABLE, batch.topic, client.holder, error, finding.bad_count, finding
            )
            self._violations.violated(
                label, rules_of(finding), Mode.OBSERVE.value, batch.outcome, client.client_id, client.holder
            )
        if batch.rehearsed:
            assert policy.rehearsed is not None  # otherwise there would be no counts
            for bound, count in zip(bounds_of(policy.rehearsed), batch.rehearsed, strict=True):
                if count:
                    self._rehearsed(client, batch.topic, bound.label, count)

    def _count_outcome(self, client_id: str | None, holder: str, topic: str | None, outcome: Outcome) -> None:
        counters = self._counters
        counters.validated_batches[outcome] += 1
        counters.client_batches[self._senders.label(client_id, holder), outcome] += 1
        counters.topic_batches[self._topic_label(topic, holder), outcome] += 1

    def _topic_label(self, topic: str | None, holder: str) -> str:
        """Return the label of a topic with traffic. Its slots are separate from those of topics with violations."""
        if topic is None or topic == OTHER or not (topic in self._topics or self._labels.knows(topic)):
            return OTHER
        return self._topics.label(topic, holder)

    def _violated(self, client: ClientDetails, batch: BatchOutcome, reported: ReportedFinding) -> None:
        mode, finding = reported.mode, reported.finding
        holder = client.holder
        label = self._labels.label(batch.topic, holder)
        self._violations.violated(label, rules_of(finding), _MODES[mode], batch.outcome, client.client_id, holder)
        if finding.rules:
            self._rules.count(batch.outcome, finding.rules)
        if finding.limit is not None:
            self.limit_reached(finding.limit)
        if reported.is_further:
            return
        for event, error in _events_of(batch, reported):
            self._labels.count(event, batch.topic, holder, error, finding.bad_count, finding)
        if mode in _ENFORCED and batch.outcome is Outcome.REJECTED:
            self._counters.request_errors[_PRODUCE, _NAME_OF[finding.code]] += 1
            for meter, marks in reported.marks.items():
                self._counters.broker_invalid[meter] += marks
            if not reported.is_listed:
                self.limit_reached(_RECORD_ERRORS)

    def not_quarantined(self, client: ClientDetails, letters: DeadLetters) -> None:
        """Count a failed quarantine write."""
        self._labels.count(BatchEvent.QUARANTINE_FAILED, letters.source, client.holder)
        if letters.limit is not None:
            self.limit_reached(letters.limit)

    def limit_reached(self, key: str) -> None:
        """Record that the limit with this configuration key was reached."""
        self._counters.limits_reached[key] += 1

    def _rehearsed(self, client: ClientDetails, topic: str | None, label: str, count: int) -> None:
        self._labels.count(BatchEvent.REHEARSED, topic, client.holder, label, count)
        self._counters.rehearsed_clients[self._clients.label(client.client_id, client.holder), label] += 1

    def _fold(self, counts: Counter[tuple[str, str]], label: str) -> None:
        """Move a client's or a topic's counts to `other`."""
        with self._labels.folding:
            for pair in [pair for pair in counts if pair[0] == label]:
                counts[OTHER, pair[1]] += counts.pop(pair)

    def counted(self) -> Counters:
        """Return a copy of the counters. Thread-safe."""
        counted = self._labels.counted()
        ordinary = self._ordinary
        if ordinary is not None:
            counted.produce_requests += ordinary.requests
            counted.accepted_partitions += ordinary.partitions
            counted.accepted_records += ordinary.records
            counted.unchecked_partitions += ordinary.unchecked
            counted.validated_batches[_ACCEPTED] += ordinary.all.accepted
            counted.validated_batches[_UNKNOWN] += ordinary.all.unknown
            counted.validated_records += ordinary.records
            counted.validated_bytes += ordinary.bytes
            counted.fallback.update({why.name.lower(): count for why, count in ordinary.fallback_counts().items()})
        if self._paths is not None:
            counted.fast_requests.update({APIS[key].name: count for key, count in self._paths.by_api().items()})
        return counted


def _events_of(batch: BatchOutcome, reported: ReportedFinding) -> Iterator[tuple[BatchEvent, str]]:
    """Yield a batch's events for one reported finding, each with the value of its label `error`.

    The value is the error that the client received or would have received.
    """
    mode, finding, copies = reported.mode, reported.finding, reported.copies
    if mode not in _ENFORCED:
        if mode is not Mode.COPY or copies is Copies.COPIED:
            yield _EVENTS[mode], _NAME_OF[finding.code]
        return
    error = NO_RESPONSE if batch.error is None else ERROR_NAMES.get(batch.error, OTHER)
    if batch.outcome is Outcome.REJECTED:
        yield BatchEvent.REJECTED, error
    if copies is Copies.QUARANTINED:
        yield BatchEvent.QUARANTINED, error
