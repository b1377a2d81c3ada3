"""Reads Avro's JSON encoding like Java's JsonDecoder. Data are converted to binary, and then validated as binary.

A union's value is null, or an object with the name of its branch. Bytes are a string of characters up to 255.
"""

import struct
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.plan import DatumPlan
from sluicegate.validation.rules.rule import StepBudget

_STEPS_OF_BYTE: Final = 20  # at most 2 µs per byte
_SHOWN = 100
_LONG: Final = (-(2**63), 2**63 - 1)
_INT: Final = (-(2**31), 2**31 - 1)
_NOT_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_WANTED: Final = {
    avro_datum.NULL: "null",
    avro_datum.BOOLEAN: "true or false",
    avro_datum.INT: "a whole number of 32 bits",
    avro_datum.LONG: "a whole number of 64 bits",
    avro_datum.BYTES: "a string of characters up to 255",
    avro_datum.STRING: "a text",
    avro_datum.SIZED: "a number, or a string of its size for a fixed",
    avro_datum.ENUM: "a symbol of the enum",
    avro_datum.ARRAY: "a list",
    avro_datum.MAP: "an object",
    avro_datum.UNION: "null, or an object with the name of one branch",
    avro_datum.RECORD: "an object with exactly the record's fields",
}


class NotInJsonEncoding(Exception):
    """Raised if data do not follow the schema in JSON encoding. The message is a phrase that follows "the value "."""


class JsonEncoding:
    """The JSON encoding of one schema."""

    def __init__(self, plan: DatumPlan) -> None:
        self._plan = plan
        self._numbers = plan.numbers
        orjson = import_module("orjson")
        self._loads, self._unreadable = orjson.loads, orjson.JSONDecodeError
        self._branches = {
            at: {self._label(branch): i for i, branch in enumerate(self._inner(at))}
            for at in plan.names
            if plan.numbers[at] == avro_datum.UNION
        }

    def binary(self, data: bytes, budget: StepBudget) -> bytes:
        """Return the data in binary encoding. Raises NotInJsonEncoding."""
        budget.spend(len(data) * _STEPS_OF_BYTE + 1)
        try:
            value = self._loads(data)
        except self._unreadable:
            raise NotInJsonEncoding("is not JSON, although the header apicurio.value.encoding declares it") from None
        out = bytearray()
        self._write(self._plan.root, value, out, 0)
        return bytes(out)

    def _write(self, at: int, value: Any, out: bytearray, depth: int) -> None:
        kind = self._numbers[at]
        if depth > avro_datum.MAX_DEPTH:
            raise self._fault(at, f"nested at most {avro_datum.MAX_DEPTH} levels deep")
        writer = _SIMPLE.get(kind)
        if writer is not None:
            if not writer(value, out):
                raise self._fault(at, _WANTED[kind])
        elif kind == avro_datum.SIZED:
            self._write_sized(at, value, out)
        elif kind == avro_datum.ENUM:
            symbols = self._plan.declared[at]["symbols"]
            if value not in symbols:
                raise self._fault(at, _WANTED[kind])
            _put(symbols.index(value), out)
        elif kind == avro_datum.ARRAY and isinstance(value, list):
            self._write_block(at, [(None, item) for item in value], out, depth)
        elif kind == avro_datum.MAP and isinstance(value, dict):
            self._write_block(at, list(value.items()), out, depth)
        elif kind == avro_datum.UNION:
            is_named = isinstance(value, dict) and len(value) == 1
            label = "null" if value is None else next(iter(value)) if is_named else ""
            branch = self._branches[at].get(label)
            if branch is None:
                raise self._fault(at, _WANTED[kind])
            _put(branch, out)
            self._write(self._numbers[at + 2 + branch], value and value[label], out, depth)
        elif kind == avro_datum.RECORD and isinstance(value, dict):
            self._write_record(at, value, out, depth)
        else:
            raise self._fault(at, _WANTED[kind])

    def _write_block(self, at: int, items: list[tuple[str | None, Any]], out: bytearray, depth: int) -> None:
        """Write the items of an array, or the entries of a map."""
        if items:
            _put(len(items), out)
        for key, item in items:
            if key is not None:
                _write_text(key, out)
            self._write(self._numbers[at + 1], item, out, depth + 1)
        out.append(0)

    def _write_record(self, at: int, value: dict[str, Any], out: bytearray, depth: int) -> None:
        fields = self._plan.declared[at]["fields"]
        if len(value) != len(fields):
            raise self._fault(at, _WANTED[avro_datum.RECORD])
        for i, field in enumerate(fields):
            names = (field["name"], *(field.get("aliases") or ()))
            name = next((each for each in names if isinstance(each, str) and each in value), None)
            if name is None:
                raise self._fault(at, f"an object with the field {field['name'][:_SHOWN]}")
            self._write(self._numbers[at + 2 + i], value[name], out, depth + 1)

    def _write_sized(self, at: int, value: Any, out: bytearray) -> None:
        schema = self._plan.declared.get(at)
        name = schema["type"] if isinstance(schema, dict) else schema
        if name in ("float", "double"):
            number = _NOT_FINITE.get(value) if isinstance(value, str) else value
            if not isinstance(number, int | float) or isinstance(number, bool):
                raise self._fault(at, "a number")
            out += _packed(_FLOAT if name == "float" else _DOUBLE, number)
            return
        data = _latin(value)
        if data is None or len(data) != self._numbers[at + 1]:
            raise self._fault(at, f"a string of {self._numbers[at + 1]} characters up to 255")
        out += data

    def _inner(self, at: int) -> list[int]:
        return list(self._numbers[at + 2 : at + 2 + self._numbers[at + 1]])

    def _label(self, at: int) -> str:
        """Return a branch's name: the full name of a named type, or else the name of the type."""
        named = self._plan.full_names.get(at)
        if named is not None:
            return named
        schema = self._plan.declared.get(at)
        return str(schema["type"] if isinstance(schema, dict) else schema)

    def _fault(self, at: int, wanted: str) -> NotInJsonEncoding:
        name = self._plan.names[at][:_SHOWN]
        return NotInJsonEncoding(f"does not match its Avro schema in JSON encoding: {name} must be {wanted}")


def _put(number: int, out: bytearray) -> None:
    """Write a number as a zigzag varint."""
    left = (number << 1) ^ (number >> 63)
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)


def _write_text(text: str, out: bytearray) -> None:
    data = text.encode()
    _put(len(data), out)
    out += data


def _packed(layout: struct.Struct, number: float) -> bytes:
    try:
        return layout.pack(number)
    except OverflowError:  # Java reads this as infinity
        return layout.pack(float("inf") if number > 0 else float("-inf"))


def _latin(value: Any) -> bytes | None:
    try:
        return value.encode("latin-1") if isinstance(value, str) else None
    except UnicodeEncodeError:
        return None


def _null(value: Any, _out: bytearray) -> bool:
    return value is None


def _boolean(value: Any, out: bytearray) -> bool:
    out.append(value is True)
    return isinstance(value, bool)


def _whole_within(least: int, most: int) -> Callable[[Any, bytearray], bool]:
    def write(value: Any, out: bytearray) -> bool:
        """Write a number. Return whether it could be written. Like Java, truncates fractions."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            return False
        _put(int(value), out)
        return True

    return write


def _bytes(value: Any, out: bytearray) -> bool:
    data = _latin(value)
    if data is None:
        return False
    _put(len(data), out)
    out += data
    return True


def _string(value: Any, out: bytearray) -> bool:
    if not isinstance(value, str):
        return False
    _write_text(value, out)
    return True


_SIMPLE: Final[dict[int, Callable[[Any, bytearray], bool]]] = {
    avro_datum.NULL: _null,
    avro_datum.BOOLEAN: _boolean,
    avro_datum.INT: _whole_within(*_INT),
    avro_datum.LONG: _whole_within(*_LONG),
    avro_datum.BYTES: _bytes,
    avro_datum.STRING: _string,
}
