"""What violations are counted by: topic, rule, mode and client together, in a bounded number of series.

Topics and rules are those that have series elsewhere too; of clients the first hundred have names of their own. And
because all of it together could still be many, the first thousand kinds have series, and what comes later counts with
`other` for topic and client.
"""

from sluicegate.proxy.reporting.client_labels import ClientLabels
from sluicegate.proxy.reporting.tally import OTHER, Tally
from sluicegate.validation.verdict import Reason, Refused

MAX_KINDS = 1000
_NAMED_BY_RULES = frozenset({Reason.RULE, Reason.REQUEST_RULE})
_WORDS = {reason: (reason.name.lower(),) for reason in Reason}
Kind = tuple[str, str, str, str]
"""Topic, rule, mode, client id."""


class ViolationLabels:
    """Counts into `tally`, whose key is a Kind."""

    def __init__(self, tally: Tally, clients: ClientLabels, max_kinds: int = MAX_KINDS) -> None:
        self._tally = tally
        self._clients = clients
        self._max_kinds = max_kinds

    def violated(self, topic: str, rules: tuple[str, ...], mode: str, client_id: str | None) -> None:
        """A batch breaks these; `topic` is a label already."""
        violations = self._tally.violations
        client = self._clients.label(client_id)
        for rule in rules:
            kind = (topic, rule, mode, client)
            if kind not in violations and len(violations) >= self._max_kinds:
                kind = (OTHER, rule, mode, OTHER)
            violations[kind] += 1


def rules_of(refused: Refused) -> tuple[str, ...]:
    """What a batch breaks: the operator's rules by name, else what a broker refuses it for (`timestamp_after`)."""
    if refused.reason in _NAMED_BY_RULES and refused.rules:
        return tuple(rule for rule, _ in refused.rules)
    return _WORDS[refused.reason]
