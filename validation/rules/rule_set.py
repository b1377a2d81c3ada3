"""A topic's rules, in the order of the configuration, and the parts of a record that they read."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.native.questions import ordinary_questions
from sluicegate.validation.rules.rule import NamedRule, Part, SupportsLookAhead, header_names_of

_FAST: bool = is_compiled()


class RuleSet:
    """The rules in a topic's policy.

    - `parts`: the parts that any rule reads.
    - `is_slow`: whether any rule may be slow.
    - `ordinary`: the checks that the fast path may make instead; None if the rules must run.
    - `looking_ahead`: the rules that evaluate several records together.
    - `header_names`: the names of the headers that any rule reads; None means all.
    """

    def __init__(self, rules: Iterable[NamedRule]) -> None:
        self.rules = tuple(rules)
        self.parts: Part = reduce(or_, (named.rule.parts for named in self.rules), Part.NONE)
        names = [header_names_of(named.rule) for named in self.rules if Part.HEADERS in named.rule.parts]
        known = [each for each in names if each is not None]
        self.header_names = frozenset().union(*known) if len(known) == len(names) else None
        # Without compiled code, reading a byte takes a hundred times as long, and no other work can run while a record
        # is read.
        self.is_slow = any(named.rule.is_slow for named in self.rules) or (self.parts is not Part.NONE and not _FAST)
        self.looking_ahead = tuple((each, each.rule) for each in self.rules if isinstance(each.rule, SupportsLookAhead))
        self.ordinary = ordinary_questions(named.rule for named in self.rules)

    def without(self, others: "RuleSet | None") -> "RuleSet | None":
        """Return the rules that are not in `others`, or None if none remain."""
        left = self.rules if others is None else tuple(rule for rule in self.rules if rule not in others.rules)
        return RuleSet(left) if left else None

    def __bool__(self) -> bool:
        return bool(self.rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleSet) and self.rules == other.rules

    def __hash__(self) -> int:
        return hash(self.rules)
