"""From what the file says of a topic's records to the rules that are asked."""

from collections.abc import Callable, Iterator, Sequence

from sluicegate.config import rules as keys
from sluicegate.config.value_rules import Schema
from sluicegate.validation.policy import Mode
from sluicegate.validation.rules.batch_size import MostRecords
from sluicegate.validation.rules.content import SchemaUnusable
from sluicegate.validation.rules.expression import IsTrue
from sluicegate.validation.rules.headers import ForbiddenHeaders, HeaderBounds, MatchedHeader, RequiredHeaders
from sluicegate.validation.rules.json_syntax import DuplicateKeys, JsonSyntax
from sluicegate.validation.rules.own_rule import own_rule
from sluicegate.validation.rules.presence import Required
from sluicegate.validation.rules.rule import NamedRule, OnOutage, Rule
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.rules.side import Side
from sluicegate.validation.rules.size import Size
from sluicegate.validation.rules.time_order import MonotonicTime
from sluicegate.validation.rules.utf8 import Utf8

SchemaRules = Callable[[Schema, Side], Rule]
"""Makes the rule of a schema, which somebody has to read or to ask for. Raises SchemaUnusable."""


def no_schemas(_schema: Schema, _side: Side) -> Rule:
    """Where nobody reads schemas. Raises SchemaUnusable."""
    raise SchemaUnusable("no schema can be read here")


def rule_set_of(rules: Sequence[keys.Rule] | None, schema_rules: SchemaRules = no_schemas) -> RuleSet | None:
    """The rules of one topic; None where there are none. What stands under one name becomes several, in one order.

    Raises RuleUnusable.
    """
    if not rules:
        return None
    return RuleSet(
        NamedRule(rule.name, one, Mode(rule.mode), OnOutage(rule.on_outage))
        for rule in rules
        for one in parts_of(rule, schema_rules)
    )


def parts_of(rule: keys.Rule, schema_rules: SchemaRules) -> Iterator[Rule]:
    """What one entry asks for. Raises RuleUnusable."""
    if rule.batch is not None:
        yield MostRecords(rule.batch.max_records)
    if rule.key is not None:
        yield from _of_content(Side.KEY, rule.key, schema_rules)
    if rule.value is not None:
        yield from _of_content(Side.VALUE, rule.value, schema_rules)
    if rule.headers is not None:
        yield from _of_headers(rule.headers)
    if rule.time is not None:
        yield MonotonicTime()
    if rule.cel is not None:
        yield IsTrue(rule.cel)
    if rule.entry_point is not None:
        yield own_rule(rule.entry_point, rule.options)


def _of_content(side: Side, content: keys.ContentKeys, schema_rules: SchemaRules) -> Iterator[Rule]:
    if content.required:
        yield Required(side)
    if content.min_size is not None or content.max_size is not None:
        yield Size(side, content.min_size or 0, content.max_size)
    if content.utf8:
        yield Utf8(side)
    if content.json_text is not None:
        yield JsonSyntax(side, DuplicateKeys(content.json_text.duplicate_keys), content.json_text.max_depth)
    if content.schema_ is not None:
        yield schema_rules(content.schema_, side)


def _of_headers(headers: keys.HeaderKeys) -> Iterator[Rule]:
    if headers.required:
        yield RequiredHeaders(headers.required)
    if headers.forbidden:
        yield ForbiddenHeaders(headers.forbidden)
    for name, pattern in headers.matched.items():
        yield MatchedHeader(name, pattern)
    if headers.max_count is not None or headers.max_size is not None:
        yield HeaderBounds(headers.max_count, headers.max_size)
