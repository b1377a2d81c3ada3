"""Counts validations: outcomes, and violations by topic, rule and client."""

from typing import TYPE_CHECKING

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.reporting.events.violation_event import ClientDetails, owner_of
from sluicegate.proxy.reporting.metrics.batch_events import FIXED, FORWARDED, QUARANTINED, REJECTED, BatchEvent
from sluicegate.proxy.reporting.metrics.broker_meters import marks_of
from sluicegate.proxy.reporting.metrics.counters import OTHER, Counters
from sluicegate.proxy.reporting.metrics.topic_labels import TopicLabels
from sluicegate.proxy.reporting.metrics.violation_labels import ClientLabels, RuleLabels, ViolationLabels, rules_of
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.sensitive.masking import Masked
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


class ValidationCounts:
    """Adds to `counters`. `ordinary` has the fast path's valid batches, `paths` its requests; None: no fast path."""

    def __init__(
        self,
        counters: Counters,
        labels: TopicLabels,
        ordinary: "OrdinaryRequests | None" = None,
        paths: "PathCounts | None" = None,
    ) -> None:
        self._counters = counters
        self._labels = labels
        self._ordinary = ordinary
        self._paths = paths
        self._clients = ClientLabels(self._fold_rehearsed)
        self._senders = ClientLabels(self._fold_batches)
        self._violations = ViolationLabels(counters, labels.folding)
        self._rules = RuleLabels(counters)

    def forwarded(self, identity: ClientIdentity, client_id: str | None, batches: int) -> None:
        """Count batches of the fast path by client id; `OrdinaryRequests` has their total."""
        self._counters.client_batches[self._senders.label(client_id, owner_of(identity)), FORWARDED] += batches

    def validated(self, identity: ClientIdentity, request: ProduceRequest, validated: ValidatedRequest) -> None:
        """Count a Produce request and the outcomes of its batches."""
        counters = self._counters
        client = self._senders.label(identity.client_id, owner_of(identity))
        counters.produce_requests += 1
        counters.unchecked_partitions += validated.unchecked
        counters.exempt_partitions += validated.exempt
        counters.accepted_partitions += len(validated.accepted)
        for place, accepted in validated.accepted.items():
            counters.accepted_records += accepted.records
            outcome = FIXED if place in validated.fixed else FORWARDED
            self._count_outcome(client, outcome, request, place, accepted.records)
        for place, rejected in validated.rejected.items():
            outcome = QUARANTINED if place in validated.quarantined else REJECTED
            self._count_outcome(client, outcome, request, place, rejected.records)
        for place, observed in validated.observed.items():
            if place not in validated.accepted and place not in validated.rejected:
                outcome = REJECTED if place in validated.to_retry else FORWARDED
                self._count_outcome(client, outcome, request, place, observed.records)

    def _count_outcome(self, client: str, outcome: str, request: ProduceRequest, place: Place, records: int) -> None:
        partition = request.topics[place[0]].partitions[place[1]]
        self._counters.validated_batches[outcome] += 1
        self._counters.client_batches[client, outcome] += 1
        self._counters.validated_records[outcome] += records
        self._counters.validated_bytes[outcome] += max(partition.records_end - partition.records_at, 0)

    def rejected(
        self, mode: Mode, client: ClientDetails, topic: str | None, rejected: Rejected, policy: TopicPolicy
    ) -> None:
        """Count a violation of a client; `mode` is the outcome, `policy` the topic's."""
        owner = client.owner
        error = _NAME_OF[rejected.code]
        label = self._labels.count(_EVENTS[mode], topic, owner, error, rejected.bad_count, rejected)
        self._violations.violated(label, rules_of(rejected), _MODES[mode], client.client_id, owner)
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

    def masked(self, masked: Masked) -> None:
        """Count the records whose fields were masked or hashed, by policy."""
        self._rules.count("mask", masked.rules)

    def unreadable(self, client: ClientDetails, topic: str | None, found: Rejected) -> None:
        """Count a forwarded batch that some clients cannot read."""
        error = _NAME_OF[found.code]
        label = self._labels.count(BatchEvent.UNREADABLE, topic, client.owner, error, found.bad_count, found)
        self._violations.violated(label, rules_of(found), _MODES[Mode.OBSERVE], client.client_id, client.owner)

    def limit_reached(self, key: str) -> None:
        """Count that the limit with this key was reached."""
        self._counters.limits_reached[key] += 1

    def rehearsed(self, client: ClientDetails, topic: str | None, label: str, count: int) -> None:
        """Count `count` records that a rehearsed bound would reject."""
        self._labels.count(BatchEvent.REHEARSED, topic, client.owner, label, count)
        self._counters.rehearsed_clients[self._clients.label(client.client_id, client.owner), label] += 1

    def _fold_rehearsed(self, client: str) -> None:
        counts = self._counters.rehearsed_clients
        with self._labels.folding:
            for pair in [pair for pair in counts if pair[0] == client]:
                counts[OTHER, pair[1]] += counts.pop(pair)

    def _fold_batches(self, client: str) -> None:
        counts = self._counters.client_batches
        with self._labels.folding:
            for pair in [pair for pair in counts if pair[0] == client]:
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
