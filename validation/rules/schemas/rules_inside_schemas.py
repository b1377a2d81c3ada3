"""Defines the rule that a value must meet the rules inside its schema (inline_rules.py).

A value passes if one of the registry's rules has changed it as a whole. The rules inside the schema may apply to the
value before that change.
"""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from sluicegate.validation.rules.cel.rule import replace_value
from sluicegate.validation.rules.rule import UNBOUNDED, RuledRecord, RuleUnusable, SchemaError, Side, StepBudget
from sluicegate.validation.rules.schemas.conditions import Clock
from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema
from sluicegate.validation.rules.schemas.inline_rules import compiled_inline_rules
from sluicegate.validation.rules.schemas.looking_ahead import look_ahead
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema, RegisteredSchema
from sluicegate.validation.rules.simple_rule import SimpleRule

# Each compiled expression takes up to 200 kB. A schema that the registry's cache has dropped is not kept here either.
_MOST_KEPT = 100


class MeetsRulesInside(SimpleRule):
    """A rule that requires a value, or a key, to meet the rules inside its schema in a registry."""

    is_slow = True

    def __init__(self, schemas: HasRegisteredSchema, side: Side, now: Clock) -> None:
        self.parts = schemas.parts
        self._schemas = schemas
        self._read = side.bytes_of
        self._now = now
        self._by_content: WeakKeyDictionary[Content, ExpressionOfSchema | str] = WeakKeyDictionary()

    def fault(self, record: RuledRecord) -> str | None:
        """Return the first rule that is not met.

        Raises Outage. Raises SchemaError if a rule that applies to the record cannot be evaluated.
        """
        found = None if self._read(record) is None else self._schemas.schema(record)
        if found is None or found[0].rules.rewrites:
            return None
        schema, data, name = found
        expression = self._by_content.get(schema.content) or self._compiled(schema, record.budget)
        try:
            if isinstance(expression, str):
                raise SchemaError(expression)
            return expression.fault(replace_value(record, data))
        except SchemaError as error:
            raise SchemaError(f"{name} cannot be used: {error}") from error

    def look_ahead(self, records: Sequence[RuledRecord], budget: StepBudget) -> None:
        """Evaluate the rules inside known schemas for several records together."""
        look_ahead(map(self._known, records), budget)

    def _known(self, record: RuledRecord) -> tuple[ExpressionOfSchema, RuledRecord] | None:
        found = None if self._read(record) is None else self._schemas.known_schema(record)
        expression = None if found is None or found[0].rules.rewrites else self._by_content.get(found[0].content)
        if found is None or expression is None or isinstance(expression, str):
            return None
        return expression, replace_value(record, found[1])

    def _compiled(self, schema: RegisteredSchema, budget: StepBudget) -> ExpressionOfSchema | str:
        budget.spend(UNBOUNDED)
        if len(self._by_content) >= _MOST_KEPT:
            self._by_content.clear()
        found: ExpressionOfSchema | str
        try:
            found = compiled_inline_rules(schema.content, schema.rules.changes, self._now)
        except RuleUnusable as error:
            found = str(error)
        self._by_content[schema.content] = found
        return found
