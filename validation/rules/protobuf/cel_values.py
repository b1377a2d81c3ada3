"""Provides Protobuf messages for CEL expressions, and visits message fields for conditions on fields.

The runtime receives the bytes and parses them with the schema itself.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final

from sluicegate.validation.rules.cel.fields import FieldVisit, SchemaField
from sluicegate.validation.rules.cel.runtime import (
    ANY_TYPE,
    CompiledExpression,
    Dialect,
    compiled,
    environment_for,
    field_environment,
    message_environment,
)
from sluicegate.validation.rules.cel.variables import NotOfSchema, complete_text
from sluicegate.validation.rules.schemas.field_tags import protobuf_tags

# The parsing cost of the library and the runtime together, as a multiple of the library's.
_PARSINGS = 4
_STEP = 100  # ns


class _Message:
    """Bytes that the runtime reads as a message, because of their type and wire format."""

    def __init__(self, kind: Any, data: bytes) -> None:
        self.DESCRIPTOR = kind
        self._data = data

    def SerializePartialToString(self) -> bytes:  # noqa: N802  # Protobuf's name
        """Return the message."""
        return self._data


class _Kind:
    """The name of a message type, in the form in which the runtime requests it."""

    def __init__(self, full_name: str) -> None:
        self.full_name = full_name


class ProtobufValues:
    """The values of one message type (`ValueReader`). `steps` bounds the cost of `fault`, the schema's check."""

    def __init__(
        self,
        descriptor: Any,
        steps: Callable[[bytes], int],
        fault: Callable[[bytes], str | None],
        dialect: Dialect = Dialect.EXPRESSION,
    ) -> None:
        self._dialect = dialect
        self._pool = descriptor.file.pool
        self._kind = _Kind(str(descriptor.full_name))
        self._steps = steps
        self._fault = fault

    def compiled(self, expression: str) -> CompiledExpression:
        if self._dialect is Dialect.CONDITION:
            return compiled(expression, message_environment(self._pool), ANY_TYPE)
        return compiled(expression, environment_for(self._pool, self._kind.full_name))

    def estimate_reading(self, data: bytes) -> tuple[int, int, int]:
        size, steps = len(data), self._steps(data)
        return size + 1, size + steps, steps * _PARSINGS * _STEP

    def read(self, data: bytes) -> Any:
        if self._fault(data) is not None:  # the runtime would write to stderr
            raise NotOfSchema
        return _Message(self._kind, data)


_INT: Final = ("TYPE_INT32", "TYPE_SINT32", "TYPE_SFIXED32", "TYPE_UINT32", "TYPE_FIXED32")
_LONG: Final = ("TYPE_INT64", "TYPE_SINT64", "TYPE_SFIXED64", "TYPE_UINT64", "TYPE_FIXED64")
_UNSIGNED: Final = frozenset({"TYPE_UINT32", "TYPE_FIXED32", "TYPE_UINT64", "TYPE_FIXED64"})
_PRIMITIVE: Final = {
    **dict.fromkeys(_INT, "INT"),
    **dict.fromkeys(_LONG, "LONG"),
    "TYPE_STRING": "STRING",
    "TYPE_BYTES": "BYTES",
    "TYPE_FLOAT": "FLOAT",
    "TYPE_DOUBLE": "DOUBLE",
    "TYPE_BOOL": "BOOLEAN",
}
"""The names of types in conditions. Enums are not primitive."""
_LEAVES: Final = {"google.protobuf.Timestamp": "LONG", "confluent.type.Decimal": "BYTES"}
"""The messages that are visited as a single value."""


class ProtobufFields:
    """A visitor of the fields in one message type's values (`FieldValues`).

    Unset fields without presence are visited with their defaults. In maps, only messages are visited.
    """

    def __init__(self, message_class: Any, steps: Callable[[bytes], int], fault: Callable[[bytes], str | None]) -> None:
        self._new = message_class
        self._pool = message_class.DESCRIPTOR.file.pool
        self.estimate_reading = ProtobufValues(message_class.DESCRIPTOR, steps, fault).estimate_reading
        self._fault = fault
        types = import_module("google.protobuf.descriptor").FieldDescriptor
        self._types = {getattr(types, kind): name for kind, name in _PRIMITIVE.items()}
        self._converters = cel_converters()

    def compiled(self, expression: str) -> CompiledExpression:
        return compiled(expression, field_environment(self._pool), ANY_TYPE)

    def visit(self, data: bytes, visit: FieldVisit) -> None:
        """Visit the fields of all messages."""
        if self._fault(data) is not None:
            raise NotOfSchema
        self._message(self._new.FromString(data), visit)

    def _message(self, message: Any, visit: FieldVisit) -> None:
        for descriptor in message.DESCRIPTOR.fields:
            field = visit.field(descriptor.full_name, descriptor.name, partial(protobuf_tags, descriptor))
            if descriptor.has_presence and not message.HasField(descriptor.name):
                continue
            value = getattr(message, descriptor.name)
            visit.check(field, self._value(descriptor, field, value, message, visit))

    def _value(self, descriptor: Any, field: SchemaField, value: Any, message: Any, visit: FieldVisit) -> object:
        """Visit the value of a field in `message`. Return the condition's result, or any value except False."""
        inner = descriptor.message_type
        if inner is not None and inner.GetOptions().map_entry:
            of_values = inner.fields_by_name["value"].message_type
            if of_values is not None and of_values.full_name not in _LEAVES:
                for each in value.values():
                    self._message(each, visit)
            return None
        is_one = descriptor.label != descriptor.LABEL_REPEATED
        if inner is not None and inner.full_name not in _LEAVES:
            for each in (value,) if is_one else value:
                visit.step()
                self._message(each, visit)
            return None
        name = self._types.get(descriptor.type) if inner is None else _LEAVES[inner.full_name]
        if name is None:
            return None
        convert = self._converters.get(descriptor.type, _same)
        if is_one:
            return visit.value(field, name, convert(value), lambda: message)
        if visit.applies_to(field):
            for each in value:
                visit.value(field, name, convert(each), lambda: message)
        return None


def cel_converters() -> dict[int, Callable[[Any], Any]]:
    """Return the functions that convert field values for the runtime, by field type.

    Values of other types are passed unchanged.
    """
    types = import_module("google.protobuf.descriptor").FieldDescriptor
    unsigned = import_module("google.protobuf.wrappers_pb2").UInt64Value

    def unsigned_of(number: int) -> Any:
        return unsigned(value=number)

    converters: dict[int, Callable[[Any], Any]] = {getattr(types, kind): unsigned_of for kind in _UNSIGNED}
    return converters | {types.TYPE_STRING: complete_text, types.TYPE_BYTES: bytearray}


def _same(value: Any) -> Any:
    return value
