"""Converts Avro values, including logical types, to CEL values. Ignores logical types that Java ignores.

| logical type | CEL |
|---|---|
| decimal | double, the nearest one |
| timestamp-millis, timestamp-micros, timestamp-nanos, local-timestamp-* | timestamp; a local one as if it were UTC |
| date, time-millis, time-micros | int, as it is encoded: days, ms or µs |
| uuid | string; for a fixed type, bytes |
"""

import math
import struct
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

PER_SECOND: Final = {
    f"{prefix}timestamp-{unit}": factor
    for prefix in ("", "local-")
    for unit, factor in (("millis", 1_000), ("micros", 1_000_000), ("nanos", 1_000_000_000))
}
_BILLION: Final = 1_000_000_000
_MOST_PRECISION: Final = 1000
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
Converter = Callable[[Any], object]


class Logical(Enum):
    """The logical types that change a value."""

    TIMESTAMP = "timestamp"
    DECIMAL = "decimal"


class _TimestampType:
    full_name = "google.protobuf.Timestamp"


class Timestamp:
    """A timestamp with the class name, descriptor and fields by which the CEL runtime recognises timestamps."""

    __slots__ = ("nanos", "seconds")
    DESCRIPTOR = _TimestampType

    def __init__(self, seconds: int, nanos: int) -> None:
        self.seconds = seconds
        self.nanos = nanos


def logical_type(schema: Any) -> Logical | None:
    """Return a schema's logical type if it is valid there and changes values; None otherwise."""
    if not isinstance(schema, Mapping):
        return None
    name, kind = schema.get("logicalType"), schema["type"]
    if kind == "long" and name in PER_SECOND:
        return Logical.TIMESTAMP
    return Logical.DECIMAL if name == "decimal" and _is_decimal(schema, kind) else None


def _is_decimal(schema: Mapping[str, Any], kind: str) -> bool:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not (type(precision) is int and type(scale) is int and 0 <= scale <= precision <= _MOST_PRECISION):
        return False
    if kind == "fixed" and type(schema["size"]) is int:
        return bool(precision <= math.floor(math.log10(2) * (8 * schema["size"] - 1)))
    return kind == "bytes"


def converter(schema: Any) -> Converter | None:
    """Return the function that converts a type's values from int or bytes; None if no conversion is necessary."""
    kind = schema["type"] if isinstance(schema, Mapping) else schema
    logical = logical_type(schema)
    if logical is Logical.TIMESTAMP:
        return _timestamps(PER_SECOND[schema["logicalType"]])
    if logical is Logical.DECIMAL:
        return _decimals(schema.get("scale", 0))
    return _CONVERTERS.get(kind)


def _timestamps(per_second: int) -> Converter:
    of_unit = _BILLION // per_second

    def convert(number: int) -> Timestamp:
        seconds, rest = divmod(number, per_second)
        return Timestamp(seconds, rest * of_unit)

    return convert


def _decimals(scale: int) -> Converter:
    divisor: int = 10**scale

    def convert(data: bytes) -> float:
        number: int = int.from_bytes(data, signed=True)
        try:
            return float(number / divisor)
        except OverflowError:
            return math.inf if number > 0 else -math.inf

    return convert


def _float(data: bytes) -> float:
    return float(_FLOAT.unpack(data)[0])


def _double(data: bytes) -> float:
    return float(_DOUBLE.unpack(data)[0])


_CONVERTERS: Final[Mapping[str, Converter]] = {
    "float": _float,
    "double": _double,
    "bytes": bytearray,
    "fixed": bytearray,
}
