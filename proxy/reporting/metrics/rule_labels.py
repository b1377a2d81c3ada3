"""Which rules have metric series of their own: the first five hundred that are broken; all others count as `other`.

Rules are named by the operator's file, so they are few, and stay few however often the file is read again.
"""

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.metrics.counters import OTHER, Tally
from sluicegate.validation.policy import Mode
from sluicegate.validation.verdict import Refused

MAX_RULES = 500


class RuleLabels:
    """Counts into `tally` by rule and by what became of the batch."""

    def __init__(self, tally: Tally, max_rules: int = MAX_RULES) -> None:
        self._tally = tally
        self._max_rules = max_rules
        self._known: set[str] = set()

    def broken(self, mode: Mode, refused: Refused) -> None:
        """A batch broke rules, each with so many records."""
        for rule, records in refused.rules:
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
