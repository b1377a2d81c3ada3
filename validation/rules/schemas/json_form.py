"""Defines the conversion of Avro and Protobuf values to JSON, so that one JSON Schema applies to data in any format.

| value | JSON |
|---|---|
| record, message, map | object, with the schema's names of fields; a field that a message lacks is absent |
| Avro's null; union | null; the value without its type's name |
| enum | the symbol; a number that the Protobuf enum does not name |
| int, long, int64, ... | number |
| decimal (Avro, `confluent.type.Decimal`) | number with all its digits |
| float, double | the shortest number that reads as the value; NaN and infinities are strings |
| bytes, fixed | string in base64; a uuid of 16 bytes as a string |
| timestamp, date, time | string in ISO 8601; a timestamp without a zone as if it were UTC |
"""

import math
import struct
from base64 import b64encode
from importlib import import_module
from typing import Any, Final, Protocol

from sluicegate.validation.rules.rule import StepBudget

_FLOAT: Final = struct.Struct("<f")
_DIGITS: Final = (6, 7, 8)
_FULL_DIGITS: Final = 9
_BILLION: Final = 1_000_000_000
_SECONDS_OF_DAY: Final = 86_400
# A decimal of at most a thousand digits fits into this many bytes. Python takes long to write larger numbers.
_MOST_DECIMAL_BYTES: Final = 416


class NoJsonForm(Exception):
    """Raised if a value cannot be converted to JSON. The message gives the reason, without quoting the value."""


class JsonForm(Protocol):
    """A conversion of one schema's values to JSON. Thread-safe."""

    def text(self, data: bytes, budget: StepBudget) -> bytes:
        """Return the value as JSON. Spends the steps in advance. Raises NotOfSchema and NoJsonForm."""


def dumped(value: Any) -> bytes:
    """Return a value as JSON. Its numbers may come from `number`. Raises NoJsonForm."""
    orjson = import_module("orjson")
    try:
        text: bytes = orjson.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:  # nested too deeply, or a string that is not UTF-8
        raise NoJsonForm("nested too deeply, or has text that is not UTF-8") from error
    return text


def number(text: str) -> Any:
    """Return a number for `dumped`, with all its digits."""
    return import_module("orjson").Fragment(text)


def base64(data: bytes) -> str:
    """Return bytes as a base64 string."""
    return b64encode(data).decode()


def double(value: float) -> float | str:
    """Return a double. NaN and infinities become strings, as in Protobuf's JSON."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def shortest_float(value: float) -> Any:
    """Return a four-byte float as the shortest number that is read as the same float."""
    if not math.isfinite(value):
        return double(value)
    for digits in _DIGITS:
        text = f"{value:.{digits}g}"
        if _is_the_same(text, value):
            return number(text)
    return number(f"{value:.{_FULL_DIGITS}g}")


def _is_the_same(text: str, value: float) -> bool:
    try:
        return bool(_FLOAT.unpack(_FLOAT.pack(float(text)))[0] == value)
    except OverflowError:  # rounded up beyond the largest float
        return False


def decimal(unscaled: bytes, scale: int) -> Any:
    """Decode a decimal from big-endian bytes. If it has more than a thousand digits, return base64 instead."""
    if len(unscaled) > _MOST_DECIMAL_BYTES or not 0 <= scale <= _MOST_DECIMAL_BYTES * 3:
        return base64(unscaled)
    whole = int.from_bytes(unscaled, signed=True)
    digits = str(abs(whole)).rjust(scale + 1, "0")
    fraction = f".{digits[-scale:]}" if scale else ""
    return number(f"{'-' if whole < 0 else ''}{digits[: len(digits) - scale]}{fraction}")


def timestamp(seconds: int, nanos: int) -> str:
    """Return a timestamp in ISO 8601, in UTC. `seconds` counts from 1970."""
    more, nanos = divmod(nanos, _BILLION)
    days, second = divmod(seconds + more, _SECONDS_OF_DAY)
    return f"{date(days)}T{_clock(second)}{_fraction(nanos)}Z"


def date(days: int) -> str:
    """Return a date in ISO 8601. `days` counts from 1970.

    The algorithm is `civil_from_days` from https://howardhinnant.github.io/date_algorithms.html.
    """
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * from_march + 2) // 5 + 1
    month = from_march + 3 if from_march < 10 else from_march - 9
    year = year_of_era + era * 400 + (month <= 2)
    return f"{year:04}-{month:02}-{day:02}"


def time_of_day(count: int, per_second: int) -> str:
    """Return a time of day in ISO 8601. `count` has `per_second` units per second."""
    second, rest = divmod(count, per_second)
    return f"{_clock(second)}{_fraction(rest * (_BILLION // per_second))}"


def duration(seconds: int, nanos: int) -> str:
    """Return a duration as Protobuf's JSON writes it, such as 1.5s."""
    whole = seconds * _BILLION + nanos
    second, rest = divmod(abs(whole), _BILLION)
    return f"{'-' if whole < 0 else ''}{second}{_fraction(rest)}s"


def uuid(data: bytes) -> str:
    """Return 16 bytes as a UUID."""
    text = data.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _clock(second: int) -> str:
    minutes, second = divmod(second, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second:02}"


def _fraction(nanos: int) -> str:
    return f".{nanos:09}".rstrip("0").rstrip(".") if nanos else ""
