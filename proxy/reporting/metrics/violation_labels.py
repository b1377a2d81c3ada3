"""What violations are counted by: topic, rule, mode and client together, in a bounded number of series.

Topics and rules are those that have series elsewhere too; of clients a hundred have names of their own. And because
all of it together could still be many, a thousand kinds have series. What comes later counts with `other` for topic and
client, unless its owner has fewer kinds than the owner that has the most, and gets one of those.
"""

from threading import Lock

from sluicegate.proxy.reporting.metrics.client_labels import MAX_CLIENTS, ClientLabels
from sluicegate.proxy.reporting.metrics.counters import OTHER, Tally
from sluicegate.proxy.reporting.metrics.fair_label_slots import FairLabelSlots
from sluicegate.validation.verdict import Reason, Rejected

MAX_KINDS = 1000
_NAMED_BY_RULES = frozenset({Reason.RULE, Reason.REQUEST_RULE})
_WORDS = {reason: (reason.name.lower(),) for reason in Reason}
Kind = tuple[str, str, str, str]
"""Topic, rule, mode, client id."""


class ViolationLabels:
    """Counts into `tally`, whose key is a Kind. `folding` is held while counts move to `other`."""

    def __init__(self, tally: Tally, folding: Lock, max_kinds: int = MAX_KINDS, max_clients: int = MAX_CLIENTS) -> None:
        self._tally = tally
        self._folding = folding
        self._clients = ClientLabels(self._fold_client, max_clients)
        self._places: FairLabelSlots[Kind] = FairLabelSlots(max_kinds, lambda kind: tally.violations[kind])

    def violated(self, topic: str, rules: tuple[str, ...], mode: str, client_id: str | None, owner: str) -> None:
        """A batch breaks these; `topic` is a label already."""
        client = self._clients.label(client_id, owner)
        for rule in rules:
            self._tally.violations[self._placed((topic, rule, mode, client), owner)] += 1

    def _placed(self, kind: Kind, owner: str) -> Kind:
        if kind in self._places:
            self._places.use(kind, owner)
            return kind
        if self._places.are_taken:
            replaced = self._places.of_others(owner)
            if replaced is None:
                return _without_names(kind)
            self._fold(replaced)
        self._places.add(kind, owner)
        return kind

    def _fold_client(self, client: str) -> None:
        for kind in [kind for kind in self._tally.violations if kind[3] == client and kind in self._places]:
            self._fold(kind)

    def _fold(self, kind: Kind) -> None:
        self._places.drop(kind)
        with self._folding:
            self._tally.violations[_without_names(kind)] += self._tally.violations.pop(kind)


def _without_names(kind: Kind) -> Kind:
    return OTHER, kind[1], kind[2], OTHER


def rules_of(rejected: Rejected) -> tuple[str, ...]:
    """What a batch breaks: the operator's rules by name, else what a broker rejects it for (`timestamp_after`)."""
    if rejected.reason in _NAMED_BY_RULES and rejected.rules:
        return tuple(rule for rule, _ in rejected.rules)
    return _WORDS[rejected.reason]
