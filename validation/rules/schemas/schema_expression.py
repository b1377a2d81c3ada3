"""Evaluates rules for data that a schema describes.

A rule is a CEL expression over `value` with its type, or a JSON Schema for the data converted to JSON. Null values
pass. Values that do not match the schema also pass, because the rule for the schema reports them.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from sluicegate.validation.rules.cel.rule import IsTrue, replace_value
from sluicegate.validation.rules.cel.runtime import ExpressionUnusable
from sluicegate.validation.rules.rule import (
    UNBOUNDED,
    Part,
    RuledRecord,
    RuleUnusable,
    SchemaError,
    Side,
    StepBudget,
)
from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema, HasExpressions, ReadAsJson
from sluicegate.validation.rules.schemas.looking_ahead import look_ahead

CompileFor = Callable[[Content, str], ExpressionOfSchema]

# Each compiled expression takes up to 200 kB. A schema that the registry's cache has dropped is not kept here either.
_MOST_KEPT = 100


@runtime_checkable
class SchemaOfRecord(Protocol):
    """A rule for a schema, which finds the schema of each record."""

    def known_content(self, record: RuledRecord) -> tuple[Content, bytes] | None:
        """Return the schema and the data without an id, if they are available without waiting."""

    def content(self, record: RuledRecord) -> tuple[Content, bytes, str] | None:
        """Return the schema, the data without an id, and the schema's name in messages.

        Returns None if the record names no schema. May wait. Raises Outage and SchemaError.
        """


class TrueOfSchema:
    """A rule that requires a condition to be true for keys or values with a schema from `schemas`.

    `text` is a CEL expression, or any other text that `compile_for` can compile for a schema.
    """

    is_slow = True
    parts = Part.KEY | Part.VALUE | Part.HEADERS

    def __init__(
        self, text: str, schemas: SchemaOfRecord, compile_for: CompileFor | None = None, side: Side = Side.VALUE
    ) -> None:
        self._text = text
        self._schemas = schemas
        self._compile_for = compile_for or expression_of
        self._read = side.bytes_of
        self._by_content: WeakKeyDictionary[Content, ExpressionOfSchema | str] = WeakKeyDictionary()

    def compile_for(self, content: Content) -> None:
        """Compile the expression for a schema that is known in advance. Raises RuleUnusable."""
        self._by_content[content] = self._compile_for(content, self._text)

    def fault(self, record: RuledRecord) -> str | None:
        found = None if self._read(record) is None else self._schemas.content(record)
        if found is None:
            return None
        content, data, name = found
        expression = self._by_content.get(content) or self._compiled(content, record.budget)
        try:
            if isinstance(expression, str):
                raise SchemaError(f"the expression does not fit the schema: {expression}")
            return expression.fault(replace_value(record, data))
        except SchemaError as error:
            raise SchemaError(f"{name} cannot be used: {error}") from error

    def look_ahead(self, records: Sequence[RuledRecord], budget: StepBudget) -> None:
        """Evaluate the conditions on known schemas for several records together."""
        look_ahead(map(self._known, records), budget)

    def description(self, record: RuledRecord) -> str | None:
        """Return the condition's explanation, or None while the record's schema is unknown."""
        known = self._known(record)
        return None if known is None else known[0].description(known[1])

    def _known(self, record: RuledRecord) -> tuple[ExpressionOfSchema, RuledRecord] | None:
        found = None if self._read(record) is None else self._schemas.known_content(record)
        expression = None if found is None else self._by_content.get(found[0])
        if found is None or expression is None or isinstance(expression, str):
            return None
        return expression, replace_value(record, found[1])

    def _compiled(self, content: Content, budget: StepBudget) -> ExpressionOfSchema | str:
        budget.spend(UNBOUNDED)
        if len(self._by_content) >= _MOST_KEPT:
            self._by_content.clear()
        found: ExpressionOfSchema | str
        try:
            found = self._compile_for(content, self._text)
        except RuleUnusable as error:
            found = str(error)
        self._by_content[content] = found
        return found


def expression_of(content: Content, text: str) -> ExpressionOfSchema:
    """Return a CEL expression over a schema's values. Raises RuleUnusable."""
    return content.expression(text) if isinstance(content, HasExpressions) else IsTrue(text)


def json_schema_of(content: Content, text: str) -> ExpressionOfSchema:
    """Return the condition that a schema's values, as JSON, are valid against a JSON Schema. Raises RuleUnusable."""
    if not isinstance(content, ReadAsJson):
        raise RuleUnusable("the values of the schema have no JSON form")
    return content.follows_as_json(text)


def check_syntax(expression: str) -> None:
    """Check what can be checked of an expression without a schema. Raises ExpressionUnusable."""
    try:
        IsTrue(expression)
    except ExpressionUnusable as error:
        if "undeclared reference" not in str(error):  # names from a Protobuf schema are undeclared here
            raise
