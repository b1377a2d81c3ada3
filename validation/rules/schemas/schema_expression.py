"""The rule that a CEL expression is true of records whose value a schema describes, which gives `value` its type.

The rule about the schema itself reports values that do not follow it; here they pass, as a null value does.
"""

from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from sluicegate.validation.rules.cel.rule import IsTrue, record_with
from sluicegate.validation.rules.cel.runtime import ExpressionUnusable
from sluicegate.validation.rules.rule import CONSTANT_STEPS, UNBOUNDED, Part, RuledRecord, RuleUnusable, SchemaError
from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema, HasExpressions

# Each compiled expression takes up to 200 kB; a schema that the registry's cache has dropped is not kept here either.
_MOST_KEPT = 100


@runtime_checkable
class SchemaOfRecord(Protocol):
    """A rule about a schema, which finds the schema of each record."""

    def known_content(self, record: RuledRecord) -> tuple[Content, bytes] | None:
        """Return the schema and the data without an id, if they are available without waiting."""

    def content(self, record: RuledRecord) -> tuple[Content, bytes, str] | None:
        """Return the schema, the data without an id, and the schema's name in messages; None if the record names no
        schema. May wait; raises Outage and SchemaError.
        """


class TrueOfSchema:
    """`expression` is true of records with a value of a schema of `schemas`."""

    is_slow = True
    needs = Part.KEY | Part.VALUE | Part.HEADERS

    def __init__(self, expression: str, schemas: SchemaOfRecord) -> None:
        self._expression = expression
        self._schemas = schemas
        self._by_content: WeakKeyDictionary[Content, ExpressionOfSchema | str] = WeakKeyDictionary()

    def compile_for(self, content: Content) -> None:
        """Compile the expression for a schema that is known beforehand. Raises RuleUnusable."""
        self._by_content[content] = _expression_of(content, self._expression)

    def steps(self, record: RuledRecord) -> int:
        """Return the steps of the expression; UNBOUNDED while it is not compiled for the record's schema."""
        if record.value is None:
            return CONSTANT_STEPS
        found = self._schemas.known_content(record)
        expression = None if found is None else self._by_content.get(found[0])
        if found is None or expression is None:
            return UNBOUNDED
        return CONSTANT_STEPS if isinstance(expression, str) else expression.steps(record_with(record, found[1]))

    def complaint(self, record: RuledRecord) -> str | None:
        found = None if record.value is None else self._schemas.content(record)
        if found is None:
            return None
        content, data, name = found
        expression = self._by_content.get(content) or self._compiled(content)
        try:
            if isinstance(expression, str):
                raise SchemaError(f"the expression does not fit it: {expression}")
            return expression.complaint(record_with(record, data))
        except SchemaError as error:
            raise SchemaError(f"{name} cannot be used: {error}") from error

    def explanation(self, _record: RuledRecord) -> str | None:
        """Return None: there are no more details."""
        return None

    def _compiled(self, content: Content) -> ExpressionOfSchema | str:
        if len(self._by_content) >= _MOST_KEPT:
            self._by_content.clear()
        found: ExpressionOfSchema | str
        try:
            found = _expression_of(content, self._expression)
        except RuleUnusable as error:
            found = str(error)
        self._by_content[content] = found
        return found


def _expression_of(content: Content, text: str) -> ExpressionOfSchema:
    return content.expression(text) if isinstance(content, HasExpressions) else IsTrue(text)


def check_syntax(expression: str) -> None:
    """Check what can be checked without a schema. Raises ExpressionUnusable."""
    try:
        IsTrue(expression)
    except ExpressionUnusable as error:
        if "undeclared reference" not in str(error):  # a name of a Protobuf schema
            raise
