"""Checks that a key or value meets the `buf.validate` constraints of its Protobuf schema.

Null passes. Records that name none of the schema's messages also pass, because the rule for the schema reports them.
"""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from sluicegate.validation.rules.cel.rule import replace_value
from sluicegate.validation.rules.rule import (
    UNBOUNDED,
    Part,
    RuledRecord,
    RuleUnusable,
    SchemaError,
    Side,
    StepBudget,
)
from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema, HasConstraints
from sluicegate.validation.rules.schemas.looking_ahead import look_ahead
from sluicegate.validation.rules.schemas.schema_expression import SchemaOfRecord
from sluicegate.validation.rules.simple_rule import SimpleRule

# A schema that the registry's cache has dropped is not kept here either.
_MOST_KEPT = 100
_Compiled = ExpressionOfSchema | str | None
"""The constraints, or the reason why they cannot be used. None if the schema's language has none."""


class MeetsConstraints(SimpleRule):
    """A rule that requires data with a schema from `schemas` to meet that schema's constraints."""

    is_slow = True

    def __init__(self, schemas: SchemaOfRecord, side: Side) -> None:
        self.parts = side.part | Part.HEADERS
        self._schemas = schemas
        self._name = side.value
        self._read = side.bytes_of
        self._by_content: WeakKeyDictionary[Content, _Compiled] = WeakKeyDictionary()

    def compile_for(self, content: Content) -> None:
        """Compile the constraints of a schema that is known in advance. Raises SchemaUnusable and Outage."""
        self._by_content[content] = content.constraints() if isinstance(content, HasConstraints) else None

    def fault(self, record: RuledRecord) -> str | None:
        """Return the first violated constraint.

        Raises Outage. Raises SchemaError if the constraints cannot be compiled.
        """
        found = None if self._read(record) is None else self._schemas.content(record)
        if found is None:
            return None
        content, data, name = found
        record.budget.spend(UNBOUNDED)  # the library has no bound
        constraints = self._compiled(content)
        if constraints is None:
            return None
        try:
            if isinstance(constraints, str):
                raise SchemaError(constraints)
            words = constraints.fault(replace_value(record, data))
        except SchemaError as error:
            raise SchemaError(f"{name} cannot be used: {error}") from error
        return None if words is None else f"the {self._name} {words}"

    def look_ahead(self, records: Sequence[RuledRecord], budget: StepBudget) -> None:
        """Evaluate the constraints of known schemas for several records together."""
        look_ahead(map(self._known, records), budget)

    def _known(self, record: RuledRecord) -> tuple[ExpressionOfSchema, RuledRecord] | None:
        found = None if self._read(record) is None else self._schemas.known_content(record)
        constraints = None if found is None else self._by_content.get(found[0])
        if found is None or constraints is None or isinstance(constraints, str):
            return None
        return constraints, replace_value(record, found[1])

    def _compiled(self, content: Content) -> _Compiled:
        if content not in self._by_content:
            if len(self._by_content) >= _MOST_KEPT:
                self._by_content.clear()
            try:
                self.compile_for(content)
            except RuleUnusable as error:
                self._by_content[content] = str(error)
        return self._by_content[content]
