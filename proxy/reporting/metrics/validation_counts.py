"""Counts validations: outcomes, and violations by topic, rule and client."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.reporting.events.violation_event import ClientDetails, holder_of
from sluicegate.proxy.reporting.metrics.batch_events import FIXED, FORWARDED, QUARANTINED, REJECTED, BatchEvent
from sluicegate.proxy.reporting.metrics.broker_meters import marks_of
from sluicegate.proxy.reporting.metrics.counters import OTHER, Counters
from sluicegate.proxy.reporting.metrics.topic_labels import MAX_TOPICS, TopicLabels
from sluicegate.proxy.reporting.metrics.violation_labels import FairLabels, RuleLabels, ViolationLabels, rules_of
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.reports import BatchTraffic
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.requests.name_pattern import OwnedClients
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.sensitive.masking import MaskedBatch
from sluicegate.validation.validated_request import Place, ValidatedRequest
from sluicegate.validation.verdict import Rejected

if TYPE_CHECKING:
    from sluicegate.proxy.fastpath.fast_path import PathCounts
    from sluicegate.validation.ordinary import OrdinaryRequests

_PRODUCE = APIS[ApiKey.PRODUCE].name
_MODES = {mode: mode.value for mode in Mode}
_EVENTS = {
    Mode.REJECT: BatchEvent.REJECTED,
    Mode.OBSERVE: BatchEvent.OBSERVED,
    Mode.FIX: BatchEvent.FIXED,
    Mode.QUARANTINE: BatchEvent.QUARANTINED,
    Mode.COPY: BatchEvent.COPIED,
    Mode.MARK: BatchEvent.MARKED,
}
_RECORD_ERRORS = "limits.max_record_errors"
_NOT_FORWARDED = frozenset({Mode.REJECT, Mode.QUARANTINE})
_NAME_OF = {code: code.name for code in ErrorCode}  # faster than Enum.name


class TrafficCounts(Protocol):
    """Counts validated batches with their records and bytes."""

    def sent_by(self, client_id: str | None, batches: int, records: int, size: int, /) -> None:
        """Count batches of a client."""

    def sent_to(self, topic: str, batches: int, records: int, size: int, /) -> None:
        """Count batches of a topic."""


class ValidationCounts:
    """Adds to `counters`. `names`: topics by their ids. `traffic` counts the same batches for the web UI.

    `ordinary` has the fast path's valid batches, `paths` its requests; None: no fast path.
    """

    def __init__(
        self,
        counters: Counters,
        labels: TopicLabels,
        names: Mapping[bytes, str],
        traffic: TrafficCounts,
        ordinary: "OrdinaryRequests | None" = None,
        paths: "PathCounts | None" = None,
        max_topics: int = MAX_TOPICS,
    ) -> None:
        self._counters = counters
        self._labels = labels
        self._names = names
        self._traffic = traffic
        self._ordinary = ordinary
        self._paths = paths
        self._clients = FairLabels(partial(self._fold, counters.rehearsed_clients))
        self._senders = FairLabels(partial(self._fold, counters.client_batches))
        self._topics = FairLabels(partial(self._fold, counters.topic_batches), max_topics)
        self._violations = ViolationLabels(counters, labels.folding)
        self._rules = RuleLabels(counters)

    def forwarded(self, identity: ClientIdentity, client_id: str | None, traffic: BatchTraffic) -> None:
        """Count batches of the fast path by client id; `OrdinaryRequests` has their total."""
        self._counters.client_batches[self._senders.label(client_id, holder_of(identity)), FORWARDED] += traffic[0]
        self._traffic.sent_by(client_id, *traffic)

    def settle_traffic(self) -> None:
        """Count the batches that the fast path has forwarded since the last call, by topic.

        The slow path has validated a batch of each of these topics before, so their labels are decided.
        """
        if self._ordinary is None:
            return
        for topic, traffic in self._ordinary.take_traffic().items():
            self._counters.topic_batches[topic if topic in self._topics else OTHER, FORWARDED] += traffic[0]
            self._traffic.sent_to(topic, *traffic)

    def client_owners(self, owners: tuple[OwnedClients, ...]) -> dict[str, tuple[str, str]]:
        """Return team and contact of the clients with their own series that have an owner. Thread-safe."""
        return self._senders.owned_by(owners)

    def validated(self, identity: ClientIdentity, request: ProduceRequest, validated: ValidatedRequest) -> None:
        """Count a Produce request and the outcomes of its batches."""
        counters = self._counters
        counters.produce_requests += 1
        counters.unchecked_partitions += validated.unchecked
        counters.exempt_partitions += validated.exempt
        counters.accepted_partitions += len(validated.accepted)
        for place, accepted in validated.accepted.items():
            counters.accepted_records += accepted.records
            outcome = FIXED if place in validated.fixed else FORWARDED
            self._count_outcome(identity, outcome, request, place, accepted.records)
        for place, rejected in validated.rejected.items():
            outcome = QUARANTINED if place in validated.quarantined else REJECTED
            self._count_outcome(identity, outcome, request, place, rejected.records)
        for place, (observed, *_) in validated.observed.items():
            if place not in validated.accepted and place not in validated.rejected:
                outcome = REJECTED if place in validated.to_retry else FORWARDED
                self._count_outcome(identity, outcome, request, place, observed.records)

    def _count_outcome(
        self, identity: ClientIdentity, outcome: str, request: ProduceRequest, place: Place, records: int
    ) -> None:
        counters, holder = self._counters, holder_of(identity)
        topic = request.topics[place[0]]
        partition = topic.partitions[place[1]]
        name = topic.name_by(self._names)
        size = max(partition.records_end - partition.records_at, 0)
        counters.validated_batches[outcome] += 1
        counters.client_batches[self._senders.label(identity.client_id, holder), outcome] += 1
        counters.topic_batches[self._topic_label(name, holder), outcome] += 1
        counters.validated_records[outcome] += records
        counters.validated_bytes[outcome] += size
        self._traffic.sent_by(identity.client_id, 1, records, size)
        if name is not None:
            self._traffic.sent_to(name, 1, records, size)

    def _topic_label(self, topic: str | None, holder: str) -> str:
        """Return the label of a topic with traffic. Its slots are others than those of topics with violations."""
        if topic is None or topic == OTHER or not (topic in self._topics or self._labels.knows(topic)):
            return OTHER
        return self._topics.label(topic, holder)

    def rejected(
        self, mode: Mode, client: ClientDetails, topic: str | None, rejected: Rejected, policy: TopicPolicy
    ) -> None:
        """Count a violation of a client; `mode` is the outcome, `policy` the topic's."""
        holder = client.holder
        error = _NAME_OF[rejected.code]
        label = self._labels.count(_EVENTS[mode], topic, holder, error, rejected.bad_count, rejected)
        self._violations.violated(label, rules_of(rejected), _MODES[mode], client.client_id, holder)
        if mode in _NOT_FORWARDED:
            self._counters.request_errors[_PRODUCE, error] += 1
            for meter, marks in marks_of(rejected, policy).items():
                self._counters.broker_invalid[meter] += marks
            if len(rejected.bad_records) < rejected.bad_count:
                self.limit_reached(_RECORD_ERRORS)
        if rejected.rules:
            self._rules.count(_MODES[mode], rejected.rules)
        if rejected.limit is not None:
            self.limit_reached(rejected.limit)

    def also_violated(self, mode: Mode, client: ClientDetails, topic: str | None, observed: Rejected) -> None:
        """Count more violations in a batch that `rejected` has counted, by rule and client."""
        label = self._labels.label(topic, client.holder)
        self._violations.violated(label, rules_of(observed), _MODES[mode], client.client_id, client.holder)
        if observed.rules:
            self._rules.count(_MODES[mode], observed.rules)
        if observed.limit is not None:
            self.limit_reached(observed.limit)

    def masked(self, masked: MaskedBatch) -> None:
        """Count the records whose fields were masked or hashed, by policy."""
        self._rules.count("mask", masked.rules)

    def unreadable(self, client: ClientDetails, topic: str | None, found: Rejected) -> None:
        """Count a forwarded batch that some clients cannot read."""
        error = _NAME_OF[found.code]
        label = self._labels.count(BatchEvent.UNREADABLE, topic, client.holder, error, found.bad_count, found)
        self._violations.violated(label, rules_of(found), _MODES[Mode.OBSERVE], client.client_id, client.holder)

    def limit_reached(self, key: str) -> None:
        """Count that the limit with this key was reached."""
        self._counters.limits_reached[key] += 1

    def rehearsed(self, client: ClientDetails, topic: str | None, label: str, count: int) -> None:
        """Count `count` records that a rehearsed bound would reject."""
        self._labels.count(BatchEvent.REHEARSED, topic, client.holder, label, count)
        self._counters.rehearsed_clients[self._clients.label(client.client_id, client.holder), label] += 1

    def _fold(self, counts: Counter[tuple[str, str]], label: str) -> None:
        """Move the counts of a client or a topic to `other`."""
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
            counted.validated_batches[FORWARDED] += ordinary.partitions
            counted.validated_records[FORWARDED] += ordinary.records
            counted.validated_bytes[FORWARDED] += ordinary.bytes
            counted.fallback.update({why.name.lower(): count for why, count in ordinary.fallback_counts().items()})
        if self._paths is not None:
            counted.fast_requests.update({APIS[key].name: count for key, count in self._paths.by_api().items()})
        return counted
