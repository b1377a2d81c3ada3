"""Checks that a value meets the conditions that its registry stores with its schema (conditions.py).

Null values pass. Values that do not match the schema also pass, because the rule for the schema reports them.
"""

from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

from sluicegate.validation.rules.cel.rule import replace_value
from sluicegate.validation.rules.rule import (
    UNBOUNDED,
    RuledRecord,
    RuleUnusable,
    SchemaError,
    Side,
    StepBudget,
)
from sluicegate.validation.rules.schemas.conditions import Clock, ConditionLanguage, SchemaCondition
from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema, HasExpressions
from sluicegate.validation.rules.schemas.looking_ahead import look_ahead
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema, RegisteredSchema
from sluicegate.validation.rules.simple_rule import SimpleRule

# Each compiled expression takes up to 200 kB. A schema that the registry's cache has dropped is not kept here either.
_MOST_KEPT = 100
_LANGUAGES: Final = frozenset(each.value for each in ConditionLanguage)
_Compiled = tuple[tuple[SchemaCondition, ExpressionOfSchema | str], ...]
"""Each condition with its expression, or with the reason why it cannot be used."""


class MeetsConditions(SimpleRule):
    """A rule that requires a value to meet all conditions of its schema in a registry."""

    is_slow = True

    def __init__(self, schemas: HasRegisteredSchema, side: Side, now: Clock) -> None:
        self.parts = schemas.parts
        self._schemas = schemas
        self._name = side.value
        self._read = side.bytes_of
        self._now = now
        self._by_content: WeakKeyDictionary[Content, _Compiled] = WeakKeyDictionary()

    def fault(self, record: RuledRecord) -> str | None:
        """Return the first violated condition. Raises Outage. Raises SchemaError if a condition cannot be evaluated."""
        found = None if self._read(record) is None else self._schemas.schema(record)
        if found is None or not found[0].rules.conditions:
            return None
        schema, data, name = found
        bare = replace_value(record, data)
        for condition, expression in self._by_content.get(schema.content) or self._compiled(schema, record.budget):
            if isinstance(expression, str):
                raise SchemaError(f"{name} cannot be used: its condition {condition.name} {expression}")
            words = expression.fault(bare)
            if words is not None:
                return f"the {self._name} does not meet the condition {condition.name} of {name}: {words}"
        return None

    def look_ahead(self, records: Sequence[RuledRecord], budget: StepBudget) -> None:
        """Evaluate each known schema's first condition for several records together."""
        look_ahead(map(self._known, records), budget)

    def _known(self, record: RuledRecord) -> tuple[ExpressionOfSchema, RuledRecord] | None:
        found = None if self._read(record) is None else self._schemas.known_schema(record)
        compiled = None if found is None else self._by_content.get(found[0].content)
        if found is None or not compiled or isinstance(compiled[0][1], str):
            return None
        return compiled[0][1], replace_value(record, found[1])

    def _compiled(self, schema: RegisteredSchema, budget: StepBudget) -> _Compiled:
        budget.spend(UNBOUNDED)
        if len(self._by_content) >= _MOST_KEPT:
            self._by_content.clear()
        found = tuple((each, condition_on(schema.content, each, self._now)) for each in schema.rules.conditions)
        self._by_content[schema.content] = found
        return found


def condition_on(content: Content, condition: SchemaCondition, now: Clock) -> ExpressionOfSchema | str:
    """Return a condition on a schema's values, or the reason why it is unusable, as a phrase that follows its name.

    `now` is the clock for the variable of that name.
    """
    if condition.language not in _LANGUAGES:
        return f"is written in {condition.language}, which is not supported here"
    if not isinstance(content, HasExpressions):
        return "is for a schema language that does not support expressions here"
    try:
        return content.condition(condition, now)
    except RuleUnusable as error:
        return f"cannot be compiled: {error}"
