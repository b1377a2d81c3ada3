"""Checks content against an Avro schema."""

from collections.abc import Sequence
from typing import Any, Final

from sluicegate.validation.rules.avro.cel_values import AvroFields, AvroValues, NoFields
from sluicegate.validation.rules.avro.datum import MAX_DEPTH, DatumFault, read_whole
from sluicegate.validation.rules.avro.encoded_schema import JsonEncodedContent
from sluicegate.validation.rules.avro.inline_rules import AvroRuledValues, avro_fields, places_of_avro
from sluicegate.validation.rules.avro.json_form import AvroJson, BytesJson
from sluicegate.validation.rules.avro.names import NAMED, named_type, read_schema
from sluicegate.validation.rules.avro.plan import DatumPlan, plan_of
from sluicegate.validation.rules.cel.bytes_values import BytesValues, true_of_bytes
from sluicegate.validation.rules.cel.fields import TrueOfFields
from sluicegate.validation.rules.cel.inline_rules import InlinePrograms, MeetsInlineRules
from sluicegate.validation.rules.cel.rule import IsTrue, MeetsCondition
from sluicegate.validation.rules.cel.runtime import Dialect
from sluicegate.validation.rules.native.questions import AvroQuestion, BytesQuestion
from sluicegate.validation.rules.rule import StepBudget
from sluicegate.validation.rules.schemas.changed_fields import ChangedFields
from sluicegate.validation.rules.schemas.conditions import (
    Clock,
    NotEvaluated,
    SchemaCondition,
    reads_changed,
    unless_read,
)
from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema, SchemaUnusable
from sluicegate.validation.rules.schemas.field_tags import FieldChange
from sluicegate.validation.rules.schemas.follows_as_json import FollowsAsJson
from sluicegate.validation.rules.schemas.inline_rules import PlacedRules
from sluicegate.validation.rules.schemas.mistaken_json import json_hint

_WHAT: Final = {
    DatumFault.ENDS_EARLY: "the data ends within it",
    DatumFault.TOO_DEEP: f"it is nested more than {MAX_DEPTH} levels deep",
    DatumFault.BAD_VARINT: "a number in it is longer than ten bytes",
    DatumFault.NO_BOOLEAN: "a boolean is one byte, 0 or 1",
    DatumFault.NO_INT: "an int has 32 bits",
    DatumFault.BAD_LENGTH: "its length is negative",
    DatumFault.NOT_UTF8: "a string in it is not UTF-8",
    DatumFault.NO_SYMBOL: "the enum has no such symbol",
    DatumFault.NO_BRANCH: "the union has no such branch",
    DatumFault.BAD_COUNT: "it counts more items than the data can hold",
    DatumFault.BLOCK_SIZE: "the length of one of its blocks is wrong",
}
_WHY_OFTEN = "was it written with this schema?"


def describe_fault(fault: int, name: str, position: int, size: int) -> str:
    """Return the message for a fault at `position` of `size` bytes. `name` is the type's name in the schema."""
    if fault == DatumFault.LEFT_OVER:
        left = "1 byte follows" if size - position == 1 else f"{size - position} bytes follow"
        return f"does not match its Avro schema: {left} {name}; {_WHY_OFTEN}"
    return (
        f"does not match its Avro schema: {name} cannot be read at byte {position}: {_WHAT[DatumFault(fault)]}; "
        f"{_WHY_OFTEN}"
    )


# Limits for the native check. The event loop reads at most 64 KiB of a record, which these limits keep to about 1 ms.
_MOST_FIXED_VALUES, _MOST_VALUES_OF_BYTE = 10_000, 3


class AvroContent:
    """A check that bytes are exactly one datum of a schema, in binary encoding. Logical types are not checked."""

    is_slow = False

    def __init__(self, plan: DatumPlan, name: str | None, encrypted: Sequence[FieldChange] = ()) -> None:
        """Create a check. `encrypted` contains the rules that encrypt fields."""
        self.plan = plan
        self._encrypted = ChangedFields(encrypted, avro_fields(plan))
        self._numbers = plan.numbers
        self._root = plan.root
        self._names = plan.names
        self._cost = plan.cost
        self._name = name
        self._json_encoded: Content | None = None

    def json_encoded(self) -> Content:
        """Return the check for data in JSON encoding (`HasJsonEncoding`)."""
        if self._json_encoded is None:
            self._json_encoded = JsonEncodedContent(self, self.plan)
        return self._json_encoded

    def record_name(self, _data: bytes) -> str | None:
        return self._name

    def ordinary(self, behind: int) -> BytesQuestion | None:
        """Return the whole check, unless a few bytes may represent many values."""
        if self._cost.fixed_values > _MOST_FIXED_VALUES or self._cost.values_of_byte > _MOST_VALUES_OF_BYTE:
            return None
        return BytesQuestion(schemas=(AvroQuestion(self._numbers, self._root, behind),))

    def fault(self, data: bytes, budget: StepBudget) -> str | None:
        budget.spend(self._cost.steps(data))
        read = read_whole(self._numbers, self._root, data)
        if read is None:
            return None
        return (
            f"{describe_fault(read.why, self._names[read.type_at], read.position, len(data))}{json_hint(data, 'Avro')}"
        )

    @property
    def encrypted_names(self) -> frozenset[str]:
        """Return the names of the fields that serializers encrypt."""
        return self._encrypted.names

    def expression(self, text: str) -> ExpressionOfSchema:
        """Return an expression over the datum. Raises ExpressionUnusable."""
        return unless_read(self._encrypted, text, IsTrue(text, AvroValues(self.plan)))

    def condition(self, condition: SchemaCondition, now: Clock) -> ExpressionOfSchema:
        """Return a registry's condition on the datum. Raises ExpressionUnusable."""
        if condition.is_about_bytes:
            return true_of_bytes(condition, now)
        if condition.changes and reads_changed(condition, avro_fields(self.plan)):
            return NotEvaluated()
        if condition.is_about_fields:
            return TrueOfFields(condition, AvroFields(self.plan), now)
        return MeetsCondition(condition.expression, AvroValues(self.plan, Dialect.CONDITION), now)

    def inline_rules(self, changes: Sequence[FieldChange], now: Clock) -> ExpressionOfSchema | None:
        """Return the rules inside the schema. Raises ExpressionUnusable."""
        placed = self.placed_rules(changes)
        programs = InlinePrograms(placed.evaluated)
        return MeetsInlineRules(programs, AvroRuledValues(self.plan, placed), now) if programs else None

    def placed_rules(self, changes: Sequence[FieldChange] = ()) -> PlacedRules:
        """Return the rules inside the schema, with their places."""
        return PlacedRules(places_of_avro(self.plan), ChangedFields(changes, avro_fields(self.plan)))

    def follows_as_json(self, json_schema: str) -> ExpressionOfSchema:
        """Return the condition that the datum, as JSON, is valid against a JSON Schema. Raises SchemaUnusable."""
        from sluicegate.validation.rules.json.schema import json_schema_content  # noqa: PLC0415  # for such rules only

        encrypted = self._encrypted.in_json()
        return FollowsAsJson(json_schema_content(json_schema, encrypted=encrypted), self.json_form())

    def json_form(self) -> AvroJson:
        """Return the conversion of data to JSON."""
        return AvroJson(self.plan)

    def description(self, _data: bytes, _budget: StepBudget) -> str | None:
        """Return None, because there are no more details."""
        return None


class AnyBytes:
    """A check that accepts any bytes, for the schema "bytes" after an id.

    Confluent's serializers write the bytes without a length, and its deserializers return all bytes after the id.
    """

    is_slow = False

    def record_name(self, _data: bytes) -> str | None:
        return "bytes"

    def fault(self, _data: bytes, _budget: StepBudget) -> str | None:
        """Return None, because any bytes are valid."""
        return None

    def expression(self, text: str) -> IsTrue:
        """Return an expression over the bytes. Raises ExpressionUnusable."""
        return IsTrue(text, BytesValues())

    def condition(self, condition: SchemaCondition, now: Clock) -> ExpressionOfSchema:
        """Return a registry's condition on the bytes. Raises ExpressionUnusable."""
        if condition.is_about_fields:
            return TrueOfFields(condition, NoFields(), now)
        return true_of_bytes(condition, now)

    def follows_as_json(self, json_schema: str) -> ExpressionOfSchema:
        """Return the condition that the bytes, as JSON, are valid against a JSON Schema. Raises SchemaUnusable."""
        from sluicegate.validation.rules.json.schema import json_schema_content  # noqa: PLC0415  # for such rules only

        return FollowsAsJson(json_schema_content(json_schema), self.json_form())

    def json_form(self) -> BytesJson:
        """Return the conversion of bytes to JSON."""
        return BytesJson()

    def description(self, _data: bytes, _budget: StepBudget) -> str | None:
        """Return None, because there is no fault."""
        return None


def avro_content(text: str, references: Sequence[str] = (), encrypted: Sequence[FieldChange] = ()) -> AvroContent:
    """Compile a schema.

    `references` are the schemas of the types that it refers to, each after its own references. `encrypted` are the
    rules that encrypt fields. Raises SchemaUnusable.
    """
    try:
        schema = read_schema(text)
        plan = plan_of(schema, [read_schema(reference) for reference in references])
        name = _name_of(schema)
    except RecursionError:
        raise SchemaUnusable("the schema is nested too deeply") from None
    except ValueError as error:
        raise SchemaUnusable(f"the Avro schema is not JSON: {str(error)[:300]}") from error
    return AvroContent(plan, name, encrypted)


def serialized_avro_content(
    text: str, references: Sequence[str] = (), encrypted: Sequence[FieldChange] = ()
) -> AvroContent | AnyBytes:
    """Compile a schema for data that a registry's serializer writes after an id. Raises SchemaUnusable."""
    content = avro_content(text, references, encrypted)
    return AnyBytes() if content.record_name(b"") == "bytes" else content


def _name_of(schema: Any) -> str | None:
    """Return the name that serializers' naming strategies use: the full name or the kind; None for a union."""
    while isinstance(schema, dict) and not isinstance(schema.get("type"), str):
        schema = schema["type"]
    if isinstance(schema, dict) and schema["type"] in NAMED:
        return named_type(schema, "").name
    kind = schema["type"] if isinstance(schema, dict) else schema
    return kind if isinstance(kind, str) else None
