"""Describes an Avro schema to CEL's type checker, using Protobuf messages that never have values.

A nullable scalar becomes a wrapper message, which CEL treats as either the scalar or null. Unions of several types,
nullable arrays and maps, and arrays within arrays get the type `dyn` (any type).
"""

from importlib import import_module
from typing import Any, Final

from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.logical import Logical, logical_type
from sluicegate.validation.rules.avro.plan import DatumPlan

PACKAGE: Final = "avro"
_FILE = "avro.proto"
_ANY = ".google.protobuf.Value"
_TIME = ".google.protobuf.Timestamp"
_DOUBLE, _INT64, _BOOL, _STRING, _MESSAGE, _BYTES = 1, 3, 8, 9, 11, 12  # FieldDescriptorProto.Type
_WRAPPERS: Final = {
    _DOUBLE: ".google.protobuf.DoubleValue",
    _INT64: ".google.protobuf.Int64Value",
    _BOOL: ".google.protobuf.BoolValue",
    _STRING: ".google.protobuf.StringValue",
    _BYTES: ".google.protobuf.BytesValue",
}
_OPTIONAL, _REPEATED = 1, 3
_PLAIN: Final = {
    avro_datum.BOOLEAN: _BOOL,
    avro_datum.INT: _INT64,
    avro_datum.LONG: _INT64,
    avro_datum.BYTES: _BYTES,
    avro_datum.STRING: _STRING,
    avro_datum.ENUM: _STRING,
}
_RESERVED: Final = range(19_000, 20_000)  # field numbers
_Type = tuple[int, str]


def describe_messages(plan: DatumPlan) -> tuple[Any, str] | None:
    """Return a descriptor pool and the name of the message that represents the schema.

    Returns None if the schema cannot be described or is not a record.
    """
    if plan.numbers[plan.root] != avro_datum.RECORD:
        return None
    pool = import_module("google.protobuf.descriptor_pool").DescriptorPool()
    for name in ("timestamp", "struct", "wrappers"):
        pool.AddSerializedFile(import_module(f"google.protobuf.{name}_pb2").DESCRIPTOR.serialized_pb)
    try:
        writer = _Writer(plan)
        pool.Add(writer.file)
        return pool, pool.FindMessageTypeByName(f"{PACKAGE}.{writer.names[plan.root]}").full_name
    except (TypeError, KeyError):  # Protobuf does not accept the names
        return None


class _Writer:
    def __init__(self, plan: DatumPlan) -> None:
        self.file = import_module("google.protobuf.descriptor_pb2").FileDescriptorProto(name=_FILE, package=PACKAGE)
        self.file.dependency.extend(f"google/protobuf/{name}.proto" for name in ("timestamp", "struct", "wrappers"))
        self._plan = plan
        self.names: dict[int, str] = {}
        records = [at for at in sorted(plan.declared) if plan.numbers[at] == avro_datum.RECORD]
        for at in records:
            short = str(plan.declared[at]["name"]).rpartition(".")[2]
            self.names[at] = short if short not in self.names.values() else f"{short}_{at}"
        for at in records:
            self._write(at)

    def _write(self, at: int) -> None:
        message = self.file.message_type.add(name=self.names[at])
        number = 0
        for i, field in enumerate(self._plan.declared[at]["fields"]):
            number = _RESERVED.stop if number + 1 == _RESERVED.start else number + 1
            self._put(message, field["name"], number, self._plan.numbers[at + 2 + i])

    def _put(self, message: Any, name: str, number: int, at: int) -> None:
        kind = self._plan.numbers[at]
        label = _OPTIONAL
        if kind == avro_datum.ARRAY:
            label = _REPEATED
            of = self._type(self._plan.numbers[at + 1])
        elif kind == avro_datum.MAP:
            label = _REPEATED
            entry = message.nested_type.add(name=f"{_camel(name)}Entry")
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, label=_OPTIONAL, type=_STRING)
            self._add(entry, "value", 2, _OPTIONAL, self._type(self._plan.numbers[at + 1]))
            of = (_MESSAGE, f".{PACKAGE}.{message.name}.{entry.name}")
        else:
            of = self._type(at)
        self._add(message, name, number, label, of)

    def _add(self, message: Any, name: str, number: int, label: int, of: _Type) -> None:
        field = message.field.add(name=name, number=number, label=label, type=of[0])
        if of[0] == _MESSAGE:
            field.type_name = of[1]

    def _type(self, at: int) -> _Type:
        """Return the type of a value. Arrays and maps get the type `dyn`."""
        numbers = self._plan.numbers
        kind = numbers[at]
        if kind == avro_datum.UNION:
            branches = numbers[at + 2 : at + 2 + numbers[at + 1]]
            others = [branch for branch in branches if numbers[branch] != avro_datum.NULL]
            if len(others) != 1 or numbers[others[0]] == avro_datum.UNION:
                return _MESSAGE, _ANY
            of = self._type(others[0])
            return of if of[0] == _MESSAGE or len(branches) == 1 else (_MESSAGE, _WRAPPERS[of[0]])
        if kind == avro_datum.RECORD:
            return _MESSAGE, f".{PACKAGE}.{self.names[at]}"
        schema = self._plan.declared.get(at)
        logical = logical_type(schema)
        if logical is Logical.TIMESTAMP:
            return _MESSAGE, _TIME
        if logical is Logical.DECIMAL:
            return _DOUBLE, ""
        if kind == avro_datum.SIZED:
            return (_BYTES if isinstance(schema, dict) and schema["type"] == "fixed" else _DOUBLE), ""
        return (_PLAIN[kind], "") if kind in _PLAIN else (_MESSAGE, _ANY)


def _camel(name: str) -> str:
    """Return the name that Protobuf gives to a map's entry."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
