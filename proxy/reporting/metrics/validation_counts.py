"""Counts what was validated, by topic, rule and client where these are known.

The first MAX_RULES rules that are broken have series of their own. Rules are named by the operator's file, so they stay
few however often the file is read again.
"""

from typing import TYPE_CHECKING

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.reporting.events.violation_event import ClientDetails
from sluicegate.proxy.reporting.metrics.batch_events import FIXED, FORWARDED, QUARANTINED, REJECTED, BatchEvent
from sluicegate.proxy.reporting.metrics.broker_meters import marks_of
from sluicegate.proxy.reporting.metrics.client_labels import ClientLabels
from sluicegate.proxy.reporting.metrics.counters import OTHER, Tally
from sluicegate.proxy.reporting.metrics.topic_labels import TopicLabels
from sluicegate.proxy.reporting.metrics.violation_labels import ViolationLabels, rules_of
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.produce import Place, ValidatedRequest
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.verdict import Rejected

if TYPE_CHECKING:
    from sluicegate.proxy.fastpath.fast_path import PathCounts
    from sluicegate.validation.ordinary import OrdinaryRequests
from sluicegate.proxy.reporting.bounded_text import cut

MAX_RULES = 500


class RuleLabels:
    """Counts into `tally` by rule and by what became of the batch."""

    def __init__(self, tally: Tally, max_rules: int = MAX_RULES) -> None:
        self._tally = tally
        self._max_rules = max_rules
        self._known: set[str] = set()

    def broken(self, mode: Mode, rejected: Rejected) -> None:
        """A batch broke rules, each with so many records."""
        for rule, records in rejected.rules:
            label = self._label(rule), mode.value
            self._tally.rule_batches[label] += 1
            self._tally.rule_records[label] += records

    def _label(self, rule: str) -> str:
        label = cut(rule)
        if label in self._known:
            return label
        if len(self._known) >= self._max_rules:
            return OTHER
        self._known.add(label)
        return label


_PRODUCE = APIS[ApiKey.PRODUCE].name
_MODES = {mode: mode.value for mode in Mode}
_EVENTS = {
    Mode.REJECT: BatchEvent.REJECTED,
    Mode.OBSERVE: BatchEvent.OBSERVED,
    Mode.FIX: BatchEvent.FIXED,
    Mode.QUARANTINE: BatchEvent.QUARANTINED,
}
_RECORD_ERRORS = "limits.max_record_errors"
_NOT_FORWARDED = frozenset({Mode.REJECT, Mode.QUARANTINE})
_NAME_OF = {code: code.name for code in ErrorCode}  # the enum's own takes longer


class ValidationCounts:
    """Adds to `tally`. `ordinary` counts the fast path's valid requests, `path_counts` all; None: no fast path."""

    def __init__(
        self,
        tally: Tally,
        labels: TopicLabels,
        ordinary: "OrdinaryRequests | None" = None,
        paths: "PathCounts | None" = None,
    ) -> None:
        self._tally = tally
        self._labels = labels
        self._ordinary = ordinary
        self._paths = paths
        self._clients = ClientLabels(self._fold_rehearsed)
        self._violations = ViolationLabels(tally, labels.folding)
        self._rules = RuleLabels(tally)

    def validated(self, request: ProduceRequest, validated: ValidatedRequest) -> None:
        """One Produce request: what of it is good or was left to the broker."""
        tally = self._tally
        tally.produce_requests += 1
        tally.unchecked_partitions += validated.unchecked
        tally.exempt_partitions += validated.exempt
        tally.accepted_partitions += len(validated.accepted)
        for place, accepted in validated.accepted.items():
            tally.accepted_records += accepted.records
            self._became(FIXED if place in validated.fixed else FORWARDED, request, place, accepted.records)
        for place, rejected in validated.rejected.items():
            self._became(QUARANTINED if place in validated.quarantined else REJECTED, request, place, rejected.records)
        for place, observed in validated.observed.items():
            if place not in validated.accepted and place not in validated.rejected:
                self._became(FORWARDED, request, place, observed.records)

    def _became(self, outcome: str, request: ProduceRequest, place: Place, records: int) -> None:
        partition = request.topics[place[0]].partitions[place[1]]
        self._tally.validated_batches[outcome] += 1
        self._tally.validated_records[outcome] += records
        self._tally.validated_bytes[outcome] += max(partition.records_end - partition.records_at, 0)

    def rejected(
        self, mode: Mode, client: ClientDetails, topic: str | None, rejected: Rejected, policy: TopicPolicy
    ) -> None:
        """Something is wrong with a batch of that client; `mode` is what became of it, `policy` its topic's."""
        owner = client.owner
        error = _NAME_OF[rejected.code]
        label = self._labels.count(_EVENTS[mode], topic, owner, error, rejected.bad_count, rejected)
        self._violations.violated(label, rules_of(rejected), _MODES[mode], client.client_id, owner)
        if mode in _NOT_FORWARDED:
            self._tally.request_errors[_PRODUCE, error] += 1
            for meter, marks in marks_of(rejected, policy).items():
                self._tally.broker_invalid[meter] += marks
            if len(rejected.bad_records) < rejected.bad_count:
                self.limit_reached(_RECORD_ERRORS)
        if rejected.rules:
            self._rules.broken(mode, rejected)
        if rejected.limit is not None:
            self.limit_reached(rejected.limit)

    def unreadable(self, client: ClientDetails, topic: str | None, found: Rejected) -> None:
        """A batch was forwarded that some clients cannot read."""
        error = _NAME_OF[found.code]
        label = self._labels.count(BatchEvent.UNREADABLE, topic, client.owner, error, found.bad_count, found)
        self._violations.violated(label, rules_of(found), _MODES[Mode.OBSERVE], client.client_id, client.owner)

    def limit_reached(self, key: str) -> None:
        """Something went beyond that limit."""
        self._tally.limits_reached[key] += 1

    def rehearsed(self, client: ClientDetails, topic: str | None, label: str, count: int) -> None:
        """A bound on trial would reject so many records."""
        self._labels.count(BatchEvent.REHEARSED, topic, client.owner, label, count)
        self._tally.rehearsed_clients[self._clients.label(client.client_id, client.owner), label] += 1

    def _fold_rehearsed(self, client: str) -> None:
        counts = self._tally.rehearsed_clients
        with self._labels.folding:
            for pair in [pair for pair in counts if pair[0] == client]:
                counts[OTHER, pair[1]] += counts.pop(pair)

    def counted(self) -> Tally:
        """The counters at one moment; may be asked from another thread."""
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
            counted.fallback.update({why.name.lower(): count for why, count in ordinary.closer_by().items()})
        if self._paths is not None:
            counted.fast_requests.update({APIS[key].name: count for key, count in self._paths.by_api().items()})
        return counted
