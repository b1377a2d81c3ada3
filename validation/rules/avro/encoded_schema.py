"""Checks Avro data in JSON encoding. Expressions and other conditions see the data as if they were binary."""

from collections.abc import Sequence
from typing import Protocol

from sluicegate.validation.rules.avro.json_encoding import JsonEncoding, NotInJsonEncoding
from sluicegate.validation.rules.avro.plan import DatumPlan
from sluicegate.validation.rules.cel.rule import replace_value
from sluicegate.validation.rules.cel.variables import NotOfSchema
from sluicegate.validation.rules.rule import RuledRecord, StepBudget
from sluicegate.validation.rules.schemas.conditions import Clock, SchemaCondition
from sluicegate.validation.rules.schemas.content import (
    Content,
    ExpressionOfSchema,
    HasExpressions,
    HasJsonForm,
    ReadAsJson,
)
from sluicegate.validation.rules.schemas.field_tags import FieldChange
from sluicegate.validation.rules.schemas.inline_rules import HasInlineRules, PlacedRules
from sluicegate.validation.rules.schemas.json_form import JsonForm


class BinaryContent(Content, HasExpressions, HasInlineRules, HasJsonForm, ReadAsJson, Protocol):
    """A schema for data in binary encoding."""


class JsonEncodedContent:
    """A check that bytes are exactly one datum of a schema, in JSON encoding."""

    is_slow = True

    def __init__(self, content: BinaryContent, plan: DatumPlan) -> None:
        self._content = content
        self._encoding = JsonEncoding(plan)

    def record_name(self, data: bytes) -> str | None:
        return self._content.record_name(data)

    def fault(self, data: bytes, budget: StepBudget) -> str | None:
        try:
            return self._content.fault(self._encoding.binary(data, budget), budget)
        except NotInJsonEncoding as error:
            return str(error)

    def description(self, _data: bytes, _budget: StepBudget) -> str | None:
        """Return None, because there are no more details."""
        return None

    def expression(self, text: str) -> ExpressionOfSchema:
        """Return an expression over the datum. Raises ExpressionUnusable."""
        return _OverBinary(self._content.expression(text), self._encoding)

    def condition(self, condition: SchemaCondition, now: Clock) -> ExpressionOfSchema:
        """Return a registry's condition on the datum. Raises ExpressionUnusable."""
        return _OverBinary(self._content.condition(condition, now), self._encoding)

    def inline_rules(self, changes: Sequence[FieldChange], now: Clock) -> ExpressionOfSchema | None:
        """Return the rules inside the schema. Raises ExpressionUnusable."""
        found = self._content.inline_rules(changes, now)
        return None if found is None else _OverBinary(found, self._encoding)

    def placed_rules(self, changes: Sequence[FieldChange] = ()) -> PlacedRules:
        """Return the rules inside the schema, with their places."""
        return self._content.placed_rules(changes)

    def follows_as_json(self, json_schema: str) -> ExpressionOfSchema:
        """Return the condition that the datum, as JSON, is valid against a JSON Schema. Raises SchemaUnusable."""
        return _OverBinary(self._content.follows_as_json(json_schema), self._encoding)

    def json_form(self) -> "_JsonOfEncoded":
        """Return the conversion of data to plain JSON, which differs from Avro's JSON encoding."""
        return _JsonOfEncoded(self._content.json_form(), self._encoding)


class _OverBinary:
    """An expression for binary data, applied to data in JSON encoding (`ExpressionOfSchema`)."""

    def __init__(self, expression: ExpressionOfSchema, encoding: JsonEncoding) -> None:
        self._expression = expression
        self._encoding = encoding

    def fault(self, record: RuledRecord) -> str | None:
        """Return a record's fault, or None. Raises the errors of the expression."""
        bare = self._bare(record)
        return None if bare is None else self._expression.fault(bare)

    def description(self, record: RuledRecord) -> str | None:
        bare = self._bare(record)
        return None if bare is None else self._expression.description(bare)

    def _bare(self, record: RuledRecord) -> RuledRecord | None:
        try:
            return replace_value(record, self._encoding.binary(record.value or b"", record.budget))
        except NotInJsonEncoding:
            return None  # the rule for the schema reports it


class _JsonOfEncoded:
    """The conversion of JSON-encoded data to plain JSON (`JsonForm`)."""

    def __init__(self, form: JsonForm, encoding: JsonEncoding) -> None:
        self._form = form
        self._encoding = encoding

    def text(self, data: bytes, budget: StepBudget) -> bytes:
        """Return the datum as JSON. Raises NotOfSchema and NoJsonForm."""
        try:
            return self._form.text(self._encoding.binary(data, budget), budget)
        except NotInJsonEncoding:
            raise NotOfSchema from None
