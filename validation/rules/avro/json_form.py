"""Converts Avro values to JSON (see schemas/json_form.py)."""

import struct
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.logical import PER_SECOND, Converter, Logical, logical_type
from sluicegate.validation.rules.avro.plan import DatumPlan
from sluicegate.validation.rules.cel.variables import NotOfSchema
from sluicegate.validation.rules.rule import StepBudget
from sluicegate.validation.rules.schemas import json_form
from sluicegate.validation.rules.schemas.json_form import NoJsonForm

# The time to read and write a value, in ns: per value, per byte, and per byte of the longest name. That name is read
# and written with each value.
_VALUE, _BYTE, _NAME_BYTE = (1_500, 10, 5) if is_compiled() else (15_000, 300, 5)
_STEP: Final = 100
_BILLION: Final = 1_000_000_000
_UUID_BYTES: Final = 16
_TIMES: Final = {("int", "time-millis"): 1_000, ("long", "time-micros"): 1_000_000}
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")


class AvroJson:
    """The conversion of one schema's values to JSON (`JsonForm`)."""

    def __init__(self, plan: DatumPlan) -> None:
        self._numbers = plan.numbers
        self._root = plan.root
        self._cost = plan.cost
        self._details = {at: _detail(plan.numbers[at], schema) for at, schema in plan.declared.items()}
        names = (name for at in self._details if plan.numbers[at] == avro_datum.RECORD for name in self._details[at])
        self._ns_of_value = _VALUE + _NAME_BYTE * max(map(len, names), default=0)
        # If an array's items take no bytes, a single byte may represent many items.
        has_empty_items = any(plan.numbers[at] == avro_datum.ARRAY and not plan.numbers[at + 2] for at in plan.names)
        self._times: Final = avro_datum.MOST_EMPTY_BUILT if has_empty_items else 1

    def text(self, data: bytes, budget: StepBudget) -> bytes:
        size = len(data)
        values = (self._cost.fixed_values + size * self._cost.values_of_byte) * self._times
        budget.spend(int((values * self._ns_of_value + size * _BYTE) / _STEP))
        found, fault = avro_datum.value_in(self._numbers, self._root, data, self._details)
        if fault == avro_datum.DatumFault.BAD_COUNT and self._times > 1:
            raise NoJsonForm(f"an array of more than {avro_datum.MOST_EMPTY_BUILT} items without bytes")
        if fault:
            raise NotOfSchema
        return json_form.dumped(found)


class BytesJson:
    """The conversion of bytes that follow an id, for the schema "bytes" (`JsonForm`)."""

    def text(self, data: bytes, budget: StepBudget) -> bytes:
        budget.spend(len(data) * _BYTE // _STEP + 1)
        return json_form.dumped(json_form.base64(data))


def _detail(kind: int, schema: Any) -> Any:
    """Return the detail for building a type's values (`Details`)."""
    if kind == avro_datum.RECORD:
        return tuple(field["name"] for field in schema["fields"])
    if kind == avro_datum.ENUM:
        return tuple(schema["symbols"])
    return str if kind in (avro_datum.STRING, avro_datum.MAP) else _converter(schema)


def _converter(schema: Any) -> Converter | None:
    kind = schema["type"] if isinstance(schema, Mapping) else schema
    name = schema.get("logicalType") if isinstance(schema, Mapping) else None
    logical = logical_type(schema)
    if logical is Logical.TIMESTAMP:
        return partial(_timestamp, PER_SECOND[str(name)])
    if logical is Logical.DECIMAL:
        return partial(_decimal, schema.get("scale", 0))
    if (kind, name) in _TIMES:
        return partial(_time, _TIMES[kind, str(name)])
    if (kind, name) == ("int", "date"):
        return json_form.date
    if (kind, name) == ("fixed", "uuid") and schema["size"] == _UUID_BYTES:
        return json_form.uuid
    return _CONVERTERS.get(kind)


def _timestamp(per_second: int, count: int) -> str:
    seconds, rest = divmod(count, per_second)
    return json_form.timestamp(seconds, rest * (_BILLION // per_second))


def _time(per_second: int, count: int) -> str:
    return json_form.time_of_day(count, per_second)


def _decimal(scale: int, data: bytes) -> object:
    return json_form.decimal(data, scale)


def _float(data: bytes) -> object:
    return json_form.shortest_float(_FLOAT.unpack(data)[0])


def _double(data: bytes) -> object:
    return json_form.double(_DOUBLE.unpack(data)[0])


_CONVERTERS: Final[Mapping[str, Converter]] = {
    "float": _float,
    "double": _double,
    "bytes": json_form.base64,
    "fixed": json_form.base64,
}
