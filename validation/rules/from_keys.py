"""Compiles a topic's configured rules."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from sluicegate.config import rules as keys
from sluicegate.config.content_keys import ContentKeys, Schema
from sluicegate.config.values.password import Password
from sluicegate.validation.rules.built_in import MonotonicTime, MostRecords, Required, Size, Utf8
from sluicegate.validation.rules.cel.rule import IsTrue
from sluicegate.validation.rules.content_rules import CONTENT_RULES, content_rule
from sluicegate.validation.rules.custom_rule import custom_rule
from sluicegate.validation.rules.headers import ForbiddenHeaders, HeaderBounds, MatchedHeader, RequiredHeaders
from sluicegate.validation.rules.rule import Mode, NamedRule, OnOutage, OnSchemaError, RecordRule, Side
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema


class RuleMaker(Protocol):
    """A factory for rules that read files, and for rules with a cost that depends on more than a record's size."""

    def of_schema(self, schema: Schema, side: Side) -> RecordRule:
        """Return the rule for a schema in a file or registry. Raises SchemaUnusable."""

    def secret(self, password: Password) -> str:
        """Read a secret that a policy names from its file. Raises PasswordUnreadable."""

    def of_content(self, key: str, side: Side, options: Mapping[str, Any]) -> RecordRule:
        """Return the rule that CONTENT_RULES contains for this key."""

    def of_expression(self, expression: str) -> RecordRule:
        """Return the rule for a CEL expression. Raises RuleUnusable."""

    def of_schema_expression(self, expression: str, schema: Schema) -> RecordRule:
        """Return the rule for a CEL expression over values with a schema. Raises RuleUnusable."""

    def of_conditions(self, schema: Schema, side: Side) -> RecordRule:
        """Return the rule for the conditions that a registry stores with a schema."""

    def of_inline_rules(self, schema: Schema, side: Side) -> RecordRule:
        """Return the rule for the rules inside a registry's schemas."""

    def of_constraints(self, schema: Schema, side: Side) -> RecordRule:
        """Return the rule for a schema's `buf.validate` constraints. Raises SchemaUnusable."""

    def of_data_as_json(self, schema: Schema, side: Side) -> RecordRule:
        """Return the rule for a JSON Schema that applies to another schema's data as JSON. Raises RuleUnusable."""

    def of_entry_point(self, name: str, options: Mapping[str, Any]) -> RecordRule:
        """Return an entry point's custom rule. Raises RuleUnusable."""


class InlineRules:
    """A factory for rules of any cost that run in the calling thread. It cannot read schemas."""

    def of_schema(self, _schema: Schema, _side: Side) -> RecordRule:
        """Raise SchemaUnusable."""
        raise SchemaUnusable("no schema can be read here")

    def secret(self, password: Password) -> str:
        """Return the current secret. Raises PasswordUnreadable."""
        return password.get()

    def of_content(self, key: str, side: Side, options: Mapping[str, Any]) -> RecordRule:
        """Return the rule that CONTENT_RULES contains for this key."""
        return content_rule(key, side, options)

    def of_expression(self, expression: str) -> RecordRule:
        """Return the rule. Raises ExpressionUnusable."""
        return IsTrue(expression)

    def of_schema_expression(self, _expression: str, _schema: Schema) -> RecordRule:
        """Raise SchemaUnusable."""
        raise SchemaUnusable("no schema can be read here")

    def of_conditions(self, _schema: Schema, _side: Side) -> RecordRule:
        """Raise SchemaUnusable."""
        raise SchemaUnusable("no registry is available here")

    def of_inline_rules(self, _schema: Schema, _side: Side) -> RecordRule:
        """Raise SchemaUnusable."""
        raise SchemaUnusable("no registry is available here")

    def of_constraints(self, _schema: Schema, _side: Side) -> RecordRule:
        """Raise SchemaUnusable."""
        raise SchemaUnusable("no schema can be read here")

    def of_data_as_json(self, _schema: Schema, _side: Side) -> RecordRule:
        """Raise SchemaUnusable."""
        raise SchemaUnusable("no schema can be read here")

    def of_entry_point(self, name: str, options: Mapping[str, Any]) -> RecordRule:
        """Return the rule. Raises CustomRuleUnusable."""
        return custom_rule(name, options)


INLINE_RULES = InlineRules()


def rule_set_of(rules: Sequence[keys.Rule] | None, maker: RuleMaker = INLINE_RULES) -> RuleSet | None:
    """Return a topic's rules, or None if there are none.

    One entry may become several rules with the entry's name. Raises RuleUnusable.
    """
    if not rules:
        return None
    made = RuleSet(
        NamedRule(rule.name, one, Mode(rule.mode), OnOutage(rule.on_outage), OnSchemaError(rule.on_schema_error))
        for rule in rules
        for one in parts_of(rule, maker)
    )
    counted = set()
    for named in made.rules:
        if isinstance(named.rule, HasRegisteredSchema):
            named.rule.counts_encrypted = named.rule.place not in counted
            counted.add(named.rule.place)
    return made


def parts_of(rule: keys.Rule, maker: RuleMaker) -> Iterator[RecordRule]:
    """Yield an entry's rules. Raises RuleUnusable."""
    if rule.batch is not None:
        yield MostRecords(rule.batch.max_records)
    if rule.key is not None:
        yield from _of_content(Side.KEY, rule.key, maker)
    if rule.value is not None:
        yield from _of_content(Side.VALUE, rule.value, maker)
    if rule.headers is not None:
        yield from _of_headers(rule.headers)
    if rule.time is not None:
        yield MonotonicTime()
    if rule.cel is not None:
        schema = None if rule.value is None else rule.value.schema_
        yield maker.of_expression(rule.cel) if schema is None else maker.of_schema_expression(rule.cel, schema)
    if rule.entry_point is not None:
        yield maker.of_entry_point(rule.entry_point, rule.options)


def _of_content(side: Side, content: ContentKeys, maker: RuleMaker) -> Iterator[RecordRule]:
    if content.required:
        yield Required(side)
    if content.min_size is not None or content.max_size is not None:
        yield Size(side, content.min_size or 0, content.max_size)
    if content.utf8:
        yield Utf8(side)
    for key in CONTENT_RULES:
        given = getattr(content, key)
        if given is not None:
            yield maker.of_content(key, side, asdict(given))
    if content.schema_ is not None:
        yield maker.of_schema(content.schema_, side)
        if content.schema_.conditions:
            yield maker.of_conditions(content.schema_, side)
        if content.schema_.inline_rules:
            yield maker.of_inline_rules(content.schema_, side)
        if content.schema_.protovalidate:
            yield maker.of_constraints(content.schema_, side)
        if content.schema_.json_schema is not None:
            yield maker.of_data_as_json(content.schema_, side)


def _of_headers(headers: keys.HeaderKeys) -> Iterator[RecordRule]:
    if headers.required:
        yield RequiredHeaders(headers.required)
    if headers.forbidden:
        yield ForbiddenHeaders(headers.forbidden)
    for name, pattern in headers.patterns.items():
        yield MatchedHeader(name, pattern)
    if headers.max_count is not None or headers.max_size is not None:
        yield HeaderBounds(headers.max_count, headers.max_size)
