"""Limits the label values of violations: client ids, rules, and their combinations with topic, mode and outcome.

At most 100 client ids and 500 rules have their own labels, and at most 1000 combinations their own series. All others
are counted as `other`. A holder (`ClientDetails.holder`) with fewer names replaces a name of the holder with the most,
so that invented names do not displace others. The counts of a replaced label move to `other`.
"""

from collections.abc import Callable, Iterable
from threading import Lock
from typing import NamedTuple

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.metrics.counters import OTHER, Counters
from sluicegate.proxy.reporting.metrics.fair_label_slots import FairLabelSlots
from sluicegate.validation.requests.name_pattern import OwnedClients, owner_among
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.verdict import Finding, Reason

MAX_CLIENTS = 100
NO_CLIENT_ID = "none"
"""The label of clients without an id."""


class FairLabels:
    """Labels for client ids or topics. `fold` moves a replaced label's counts to `other`."""

    def __init__(self, fold: Callable[[str], None], most: int = MAX_CLIENTS) -> None:
        self._slots: FairLabelSlots[str] = FairLabelSlots(most, fold)

    def __contains__(self, label: object) -> bool:
        return label in self._slots

    def label(self, name: str | None, holder: str) -> str:
        """Return a topic's or a client id's label. `name` is None for a client without an id."""
        label = NO_CLIENT_ID if name is None else cut(name)
        return label if self._slots.take(label, holder) else OTHER

    def owned_by(self, owners: tuple[OwnedClients, ...]) -> dict[str, tuple[str, str]]:
        """Return the team and contact of each client that has its own label and an owner. Thread-safe.

        Long strings are truncated. A label's holder is a principal or an address, and patterns of principals do not
        apply to addresses.
        """
        found: dict[str, tuple[str, str]] = {}
        for label, holder in self._slots.holders().items() if owners else ():
            principal = holder if holder.partition(":")[0].isalpha() else None
            client = Client(holder, None if label == NO_CLIENT_ID else label, principal=principal)
            owner = owner_among(owners, client)
            if owner is not None:
                found[label] = (cut(owner.team), cut(owner.contact or ""))
        return found


MAX_RULES = 500


class RuleLabels:
    """Counts violated rules into `counters`, by rule and outcome. Rules' names come from the configuration."""

    def __init__(self, counters: Counters, max_rules: int = MAX_RULES) -> None:
        self._counters = counters
        self._max_rules = max_rules
        self._known: set[str] = set()

    def count(self, outcome: str, rules: Iterable[tuple[str, int]]) -> None:
        """Count the rules that a batch violates, and the number of records that violate each rule."""
        for rule, records in rules:
            label = self._label(rule), outcome
            self._counters.rule_batches[label] += 1
            self._counters.rule_records[label] += records

    def _label(self, rule: str) -> str:
        label = cut(rule)
        if label in self._known:
            return label
        if len(self._known) >= self._max_rules:
            return OTHER
        self._known.add(label)
        return label


MAX_KINDS = 1000
_NAMED_BY_RULES = frozenset({Reason.RULE_VIOLATED, Reason.REQUEST_RULE_VIOLATED})
_REASONS = {reason: (reason.value,) for reason in Reason}


class SeriesLabels(NamedTuple):
    """A series' labels. `mode` is the policy's mode."""

    topic: str
    rule: str
    mode: str
    outcome: str
    client_id: str


class ViolationLabels:
    """Counts violations into `counters` by labels. `folding` is locked while counts move to `other`."""

    def __init__(
        self, counters: Counters, folding: Lock, max_kinds: int = MAX_KINDS, max_clients: int = MAX_CLIENTS
    ) -> None:
        self._counters = counters
        self._folding = folding
        self._clients = FairLabels(self._fold_client, max_clients)
        self._slots: FairLabelSlots[SeriesLabels] = FairLabelSlots(
            max_kinds, self._fold, lambda kind: counters.violations[kind]
        )

    def violated(
        self, topic: str, rules: tuple[str, ...], mode: str, outcome: str, client_id: str | None, holder: str
    ) -> None:
        """Count a batch's violated rules. `topic` is already a label."""
        client = self._clients.label(client_id, holder)
        for rule in rules:
            kind = SeriesLabels(topic, rule, mode, outcome, client)
            self._counters.violations[kind if self._slots.take(kind, holder) else _without_names(kind)] += 1

    def _fold_client(self, client: str) -> None:
        for kind in [
            kind
            for kind in map(SeriesLabels._make, self._counters.violations)
            if kind.client_id == client and kind in self._slots
        ]:
            self._slots.drop(kind)
            self._fold(kind)

    def _fold(self, kind: SeriesLabels) -> None:
        with self._folding:
            self._counters.violations[_without_names(kind)] += self._counters.violations.pop(kind)


def _without_names(kind: SeriesLabels) -> SeriesLabels:
    return kind._replace(topic=OTHER, client_id=OTHER)


def rules_of(finding: Finding) -> tuple[str, ...]:
    """Return the names of the violated configured rules, or else a reason that brokers have too
    (`timestamp_in_future`).
    """
    if finding.reason in _NAMED_BY_RULES and finding.rules:
        return tuple(rule for rule, _ in finding.rules)
    return _REASONS[finding.reason]
