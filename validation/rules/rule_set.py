"""The rules of one topic, in the file's order, and what they need together."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.native.questions import ordinary_questions
from sluicegate.validation.rules.rule import NamedRule, Part

_FAST: bool = is_compiled()


class RuleSet:
    """Made once for a topic's policy. `needs`: what any of them reads; `is_slow`: whether any of them may take long.

    `ordinary`: what the fast path may ask in their place; None: they have to be asked.
    """

    def __init__(self, rules: Iterable[NamedRule]) -> None:
        self.rules = tuple(rules)
        self.needs: Part = reduce(or_, (named.rule.needs for named in self.rules), Part.NONE)
        # Where nothing is compiled reading a byte takes a hundred times as long, and a record is read in one go.
        self.is_slow = any(named.rule.is_slow for named in self.rules) or (self.needs is not Part.NONE and not _FAST)
        self.ordinary = ordinary_questions(named.rule for named in self.rules)

    def __bool__(self) -> bool:
        return bool(self.rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleSet) and self.rules == other.rules

    def __hash__(self) -> int:
        return hash(self.rules)
