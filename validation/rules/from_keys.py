"""From what the file says of a topic's records to the rules that are asked."""

from collections.abc import Iterator, Sequence

from sluicegate.config import rules as keys
from sluicegate.validation.policy import Mode
from sluicegate.validation.rules.batch_size import MostRecords
from sluicegate.validation.rules.headers import ForbiddenHeaders, HeaderBounds, MatchedHeader, RequiredHeaders
from sluicegate.validation.rules.presence import Required
from sluicegate.validation.rules.rule import NamedRule, OnOutage, Rule
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.rules.side import Side
from sluicegate.validation.rules.size import Size
from sluicegate.validation.rules.time_order import MonotonicTime
from sluicegate.validation.rules.utf8 import Utf8


def rule_set_of(rules: Sequence[keys.Rule] | None) -> RuleSet | None:
    """The rules of one topic; None where there are none. What stands under one name becomes several, in one order."""
    if not rules:
        return None
    return RuleSet(
        NamedRule(rule.name, one, Mode(rule.mode), OnOutage(rule.on_outage)) for rule in rules for one in _parts(rule)
    )


def _parts(rule: keys.Rule) -> Iterator[Rule]:
    if rule.batch is not None:
        yield MostRecords(rule.batch.max_records)
    if rule.key is not None:
        yield from _of_content(Side.KEY, rule.key)
    if rule.value is not None:
        yield from _of_content(Side.VALUE, rule.value)
    if rule.headers is not None:
        yield from _of_headers(rule.headers)
    if rule.time is not None:
        yield MonotonicTime()


def _of_content(side: Side, content: keys.ContentKeys) -> Iterator[Rule]:
    if content.required:
        yield Required(side)
    if content.min_size is not None or content.max_size is not None:
        yield Size(side, content.min_size or 0, content.max_size)
    if content.utf8:
        yield Utf8(side)


def _of_headers(headers: keys.HeaderKeys) -> Iterator[Rule]:
    if headers.required:
        yield RequiredHeaders(headers.required)
    if headers.forbidden:
        yield ForbiddenHeaders(headers.forbidden)
    for name, pattern in headers.matched.items():
        yield MatchedHeader(name, pattern)
    if headers.max_count is not None or headers.max_size is not None:
        yield HeaderBounds(headers.max_count, headers.max_size)
