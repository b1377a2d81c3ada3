"""The rules of one topic, in the file's order, and what they need together."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from sluicegate.validation.rules.rule import NamedRule, Part


class RuleSet:
    """Made once for a topic's policy. `needs`: what any of them reads; `is_slow`: whether any of them may take long."""

    def __init__(self, rules: Iterable[NamedRule]) -> None:
        self.rules = tuple(rules)
        self.needs: Part = reduce(or_, (named.rule.needs for named in self.rules), Part.NONE)
        self.is_slow = any(named.rule.is_slow for named in self.rules)

    def __bool__(self) -> bool:
        return bool(self.rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleSet) and self.rules == other.rules

    def __hash__(self) -> int:
        return hash(self.rules)
