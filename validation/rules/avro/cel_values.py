"""Reads Avro values for CEL expressions, and visits the fields of Avro values for conditions on fields.

Only those fields of the outer record are read that the expression uses.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.cel_types import PACKAGE, describe_messages
from sluicegate.validation.rules.avro.logical import converter
from sluicegate.validation.rules.avro.plan import DatumPlan
from sluicegate.validation.rules.cel.fields import FieldVisit, SchemaField
from sluicegate.validation.rules.cel.runtime import (
    ANY_TYPE,
    CompiledExpression,
    Dialect,
    ExpressionUnusable,
    compiled,
    environment_for,
    field_environment,
    message_environment,
)
from sluicegate.validation.rules.cel.tree import Name, Select, variables_of
from sluicegate.validation.rules.cel.variables import NotOfSchema, ValueUnreadable, complete_text
from sluicegate.validation.rules.schemas.field_tags import inline_tags

# The time to read a value and convert it for the runtime, in ns per value and per byte.
_VALUE, _BYTE = (1_000, 3) if is_compiled() else (10_000, 300)


class AvroValues:
    """The values of one schema, for one expression (`ValueReader`)."""

    def __init__(self, plan: DatumPlan, dialect: Dialect = Dialect.EXPRESSION) -> None:
        self._dialect = dialect
        self._numbers = plan.numbers
        self._root = plan.root
        self._plan = plan
        self._cost = plan.cost
        self._details: dict[int, Any] = {}
        # If an array's items take no bytes, a single byte may represent many items.
        has_empty_items = any(plan.numbers[at] == avro_datum.ARRAY and not plan.numbers[at + 2] for at in plan.names)
        self._times: Final = avro_datum.MOST_EMPTY_BUILT if has_empty_items else 1

    def compiled(self, expression: str) -> CompiledExpression:
        """Check the expression against the schema, and compile it for values of any type."""
        if self._dialect is Dialect.CONDITION:
            found = compiled(expression, message_environment(), ANY_TYPE)
            self._details = _details(self._plan, None)
            return found
        checked_by = describe_messages(self._plan)
        if checked_by is not None:
            try:
                compiled(expression, environment_for(*checked_by))
            except ExpressionUnusable as error:
                raise ExpressionUnusable(str(error).replace(f"'{PACKAGE}.", "'")) from None
        found = compiled(expression)
        self._details = _details(self._plan, _used(found))
        return found

    def estimate_reading(self, data: bytes) -> tuple[int, int, int]:
        size = len(data)
        values = int((self._cost.fixed_values + size * self._cost.values_of_byte) * self._times)
        return values, size + values, values * _VALUE + size * _BYTE

    def read(self, data: bytes) -> Any:
        return self.read_with(data, self._details)

    def read_with(self, data: bytes, details: avro_datum.Details) -> Any:
        """Return the value, built with `details`. Raises NotOfSchema and ValueUnreadable."""
        found, fault = avro_datum.value_in(self._numbers, self._root, data, details)
        if fault == avro_datum.DatumFault.BAD_COUNT and self._times > 1:
            raise ValueUnreadable(f"Avro with an array of more than {avro_datum.MOST_EMPTY_BUILT} items without bytes")
        if fault:
            raise NotOfSchema
        return found


class _OfBranch(NamedTuple):
    """A union's value, and the index of its branch."""

    branch: int
    value: Any


_PRIMITIVE: Final = {
    avro_datum.NULL: "NULL",
    avro_datum.BOOLEAN: "BOOLEAN",
    avro_datum.INT: "INT",
    avro_datum.LONG: "LONG",
    avro_datum.BYTES: "BYTES",
    avro_datum.STRING: "STRING",
}
"""The names of types in conditions. Float and double have names of their own; types not listed are not primitive."""


class AvroFields:
    """A visitor of the fields in one schema's values (`FieldValues`).

    It also visits nulls in unions. It does not descend into a record that contains itself. In an array or a map,
    Confluent's client visits such an inner record as a value of type NULL. In a union, it does not visit the inner
    record at all.
    """

    def __init__(self, plan: DatumPlan) -> None:
        self._plan = plan
        self._numbers = plan.numbers
        self._values = AvroValues(plan)
        self.estimate_reading = self._values.estimate_reading
        self._details = details_with_branches(plan)

    def compiled(self, expression: str) -> CompiledExpression:
        """Compile an expression over a field of any type."""
        return compiled(expression, field_environment(), ANY_TYPE)

    def visit(self, data: bytes, visit: FieldVisit) -> None:
        """Visit the fields of all records."""
        self._value(self._plan.root, self._values.read_with(data, self._details), visit, None, _nothing, ())

    def _value(
        self,
        at: int,
        value: Any,
        visit: FieldVisit,
        field: SchemaField | None,
        message: Callable[[], Any],
        within: tuple[int, ...],
    ) -> object:
        """Visit a value of `field` in `message`. Return the condition's result, or any value except False."""
        kind = self._numbers[at]
        if kind == avro_datum.UNION:
            branch = self._numbers[at + 2 + value.branch]
            if branch in within:
                return None
            return self._value(branch, value.value, visit, field, message, within)
        if kind == avro_datum.RECORD and at not in within:
            self._record(at, value, visit, (*within, at))
        elif kind == avro_datum.ARRAY:
            for item in value:
                self._value(self._numbers[at + 1], item, visit, field, message, within)
        elif kind == avro_datum.MAP:
            for item in value.values():
                self._value(self._numbers[at + 1], item, visit, field, message, within)
        else:
            name = self._type_name(at, kind)
            return value if name is None else visit.value(field, name, plain(value), message)
        return None

    def _record(self, at: int, record: dict[str, Any], visit: FieldVisit, within: tuple[int, ...]) -> None:
        full_name = self._plan.full_names[at]
        message = partial(plain, record)
        for i, declared in enumerate(self._plan.declared[at]["fields"]):
            name = declared["name"]
            field = visit.field(f"{full_name}.{name}", name, partial(inline_tags, declared))
            found = self._value(self._numbers[at + 2 + i], record[name], visit, field, message, within)
            visit.check(field, found)

    def _type_name(self, at: int, kind: int) -> str | None:
        """Return the name of a primitive type, or NULL for a record within itself."""
        if kind == avro_datum.SIZED:
            schema = self._plan.declared.get(at)
            name = schema["type"] if isinstance(schema, dict) else str(schema)
            return {"float": "FLOAT", "double": "DOUBLE"}.get(name)
        return "NULL" if kind == avro_datum.RECORD else _PRIMITIVE.get(kind)


def details_with_branches(plan: DatumPlan) -> avro_datum.Details:
    """Return the details for building values in which unions keep the index of their branch."""
    details = _details(plan, None)
    return details | {at: _OfBranch for at in plan.names if plan.numbers[at] == avro_datum.UNION}


def _nothing() -> None:
    """Return None, because no object contains the outermost value."""


def plain(value: Any) -> Any:
    """Return a value without the branches of its unions."""
    if isinstance(value, _OfBranch):
        return plain(value.value)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if type(value) is list else value


class NoFields:
    """Values without fields (`FieldValues`)."""

    def compiled(self, expression: str) -> CompiledExpression:
        return compiled(expression, field_environment(), ANY_TYPE)

    def estimate_reading(self, data: bytes) -> tuple[int, int, int]:
        return 0, len(data), 0

    def visit(self, _data: bytes, _visit: FieldVisit) -> None:
        """Visit nothing."""


def _used(found: CompiledExpression) -> frozenset[str] | None:
    """Return the fields of `value` that an expression uses, or None if it uses the value itself."""
    fields = set()
    for used in variables_of(found.tree):
        if isinstance(used, Name) and used.name == "value":
            return None
        if isinstance(used, Select) and isinstance(used.operand, Name) and used.operand.name == "value":
            fields.add(used.field)
    return frozenset(fields)


def _details(plan: DatumPlan, used: frozenset[str] | None) -> dict[int, Any]:
    """Return the details for building values.

    `used` contains the fields of the outer record to read; None means all.
    """
    details: dict[int, Any] = {}
    is_projected = used is not None and not _contains_itself(plan)
    for at, schema in plan.declared.items():
        kind = plan.numbers[at]
        if kind == avro_datum.RECORD:
            names = (field["name"] for field in schema["fields"])
            is_outer = at == plan.root and is_projected
            details[at] = tuple(None if is_outer and name not in (used or ()) else name for name in names)
        elif kind == avro_datum.ENUM:
            details[at] = tuple(schema["symbols"])
        elif kind in (avro_datum.STRING, avro_datum.MAP):
            details[at] = complete_text
        else:
            details[at] = converter(schema)
    return details


def _contains_itself(plan: DatumPlan) -> bool:
    numbers = plan.numbers
    for at in plan.names:
        kind = numbers[at]
        if kind in (avro_datum.ARRAY, avro_datum.MAP) and numbers[at + 1] == plan.root:
            return True
        if kind in (avro_datum.UNION, avro_datum.RECORD) and plan.root in numbers[at + 2 : at + 2 + numbers[at + 1]]:
            return True
    return False
