"""Converts Protobuf messages to JSON (see schemas/json_form.py).

Protobuf's own JSON mapping is used only for the well-known types. Otherwise, unlike in that mapping, fields have their
names in the schema, and 64-bit integers are numbers. Fields without presence are always written, with their defaults if
necessary. Lists and maps are also always written, even if they are empty.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from sluicegate.validation.rules.cel.variables import NotOfSchema
from sluicegate.validation.rules.rule import StepBudget
from sluicegate.validation.rules.schemas import json_form

# The library's parsing, and Python's own work per possible field, in multiples of the library's parsing.
_TIMES: Final = 20
_MOST_KNOWN: Final = 1_000
_Write = Callable[[Any], object]


class _Field(NamedTuple):
    """A field in a message. `write` converts a single value, item or map value."""

    name: str
    has_presence: bool
    is_repeated: bool
    is_map: bool
    write: _Write


class ProtobufJson:
    """The messages of one type (`JsonForm`). `steps` bounds the cost of `fault`, the check against the schema."""

    def __init__(
        self, new: Callable[[], Any], steps: Callable[[bytes], int], fault: Callable[[bytes], str | None]
    ) -> None:
        self._new = new
        self._steps = steps
        self._fault = fault
        self._fields: dict[str, tuple[_Field, ...]] = {}

    def text(self, data: bytes, budget: StepBudget) -> bytes:
        budget.spend(self._steps(data) * _TIMES)
        if self._fault(data) is not None:
            raise NotOfSchema
        message = self._new()
        message.ParseFromString(data)
        try:
            return json_form.dumped(self._message(message))
        except UnicodeDecodeError as error:  # proto2 does not check strings
            raise json_form.NoJsonForm("text that is not UTF-8") from error

    def _message(self, message: Any) -> object:
        kind = message.DESCRIPTOR.full_name
        if kind in _WELL_KNOWN:
            return _WELL_KNOWN[kind](message)
        return {
            field.name: _value_of(message, field)
            for field in self._fields_of(message.DESCRIPTOR)
            if not field.has_presence or message.HasField(field.name)
        }

    def _fields_of(self, descriptor: Any) -> tuple[_Field, ...]:
        found = self._fields.get(descriptor.full_name)
        if found is None:
            if len(self._fields) >= _MOST_KNOWN:
                self._fields.clear()
            found = self._fields[descriptor.full_name] = tuple(map(self._described, descriptor.fields))
        return found

    def _described(self, field: Any) -> _Field:
        message = field.message_type
        is_map = message is not None and bool(message.GetOptions().map_entry)
        of = message.fields_by_name["value"] if is_map else field
        return _Field(field.name, field.has_presence, _is_repeated(field), is_map, self._writer_of(of))

    def _writer_of(self, field: Any) -> _Write:
        if field.message_type is not None:
            return self._message
        if field.enum_type is not None:
            names = field.enum_type.values_by_number

            def symbol(number: int) -> object:
                return names[number].name if number in names else number

            return symbol
        return _SCALARS.get(field.type, _as_it_is)


def _is_repeated(field: Any) -> bool:
    found = getattr(field, "is_repeated", None)  # since protobuf 6.31, which deprecates labels
    return bool(field.label == field.LABEL_REPEATED if found is None else found)


def _value_of(message: Any, field: _Field) -> object:
    value, write = getattr(message, field.name), field.write
    if field.is_map:
        return {_key(key): write(item) for key, item in value.items()}
    return [write(item) for item in value] if field.is_repeated else write(value)


def _key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _as_it_is(value: object) -> object:
    return value


def _timestamp(message: Any) -> object:
    return json_form.timestamp(message.seconds, message.nanos)


def _duration(message: Any) -> object:
    return json_form.duration(message.seconds, message.nanos)


def _decimal(message: Any) -> object:
    return json_form.decimal(message.value, message.scale)


def _value(message: Any) -> object:
    """Return the JSON of a google.protobuf.Value."""
    kind = message.WhichOneof("kind")
    if kind is None or kind == "null_value":
        return None
    value = getattr(message, kind)
    if kind == "number_value":
        return json_form.double(value)
    return _struct(value) if kind == "struct_value" else _list(value) if kind == "list_value" else value


def _struct(message: Any) -> object:
    return {name: _value(value) for name, value in message.fields.items()}


def _list(message: Any) -> object:
    return [_value(value) for value in message.values]


def _wrapped(write: _Write) -> _Write:
    def unwrapped(message: Any) -> object:
        return write(message.value)

    return unwrapped


_DOUBLE, _FLOAT, _BYTES = 1, 2, 12  # FieldDescriptorProto.Type
_SCALARS: Final[Mapping[int, _Write]] = {
    _DOUBLE: json_form.double,
    _FLOAT: json_form.shortest_float,
    _BYTES: json_form.base64,
}
_WELL_KNOWN: Final[Mapping[str, _Write]] = {
    "confluent.type.Decimal": _decimal,
    "google.protobuf.Timestamp": _timestamp,
    "google.protobuf.Duration": _duration,
    "google.protobuf.Struct": _struct,
    "google.protobuf.ListValue": _list,
    "google.protobuf.Value": _value,
    "google.protobuf.DoubleValue": _wrapped(json_form.double),
    "google.protobuf.FloatValue": _wrapped(json_form.shortest_float),
    "google.protobuf.BytesValue": _wrapped(json_form.base64),
    **{
        f"google.protobuf.{name}Value": _wrapped(_as_it_is)
        for name in ("Int64", "UInt64", "Int32", "UInt32", "Bool", "String")
    },
}
