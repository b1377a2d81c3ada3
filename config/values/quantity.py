"""Parses numbers as people write them: plain, durations with a unit (`1h`), sizes with a unit (`100MB`, `64KiB`)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sluicegate.protocol.integers import LONG_MAX

NONE_SCHEMA = {"const": "none"}
_DIGITS = r"\d[\d_]*(?:\.\d+)?"
_NUMBER = re.compile(rf"([+-]?)({_DIGITS})\s*([A-Za-z]*)", re.ASCII)
_MAX_TEXT = 40
_SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS = 1000, 60_000, 3_600_000, 86_400_000
_DURATIONS_MS = {"ms": 1, "s": _SECOND_MS, "m": _MINUTE_MS, "min": _MINUTE_MS, "h": _HOUR_MS, "d": _DAY_MS}
_SIZES = {
    "B": 1,
    **{prefix + "B": 1000**power for power, prefix in enumerate(("k", "M", "G", "T"), 1)},
    "KB": 1000,
    **{prefix + "iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A kind of number: its name, its units and its bounds (inclusive).

    `none` is the value that the word `none` stands for, if that differs from a key's default.
    """

    what: str
    example: str
    low: Decimal
    high: Decimal
    units: Mapping[str, Decimal] = field(default_factory=dict, hash=False)
    whole: bool = True
    none: int | None = None

    def read(self, value: Any) -> int | float:
        """Return the number that a file, a variable or a program contains. Raises ValueError with the expected form."""
        if self.none is not None and is_none(value):
            return self.none
        amount = self._amount(value)
        if amount is None:
            raise ValueError(f"expected {self.what}, such as {self.example}; found {format_quantity(value)}")
        if amount <= 0 < self.low and not self.whole:
            raise ValueError(f"input should be greater than 0; found {format_quantity(value)}")
        if not self.low <= amount <= self.high:
            raise ValueError(f"expected {self.what}{self._bounds(amount)}; found {format_quantity(value)}")
        return int(amount) if self.whole else float(amount)

    def json_schema(self) -> dict[str, Any]:
        """Return the schema: a number within the bounds, or a string with or without a unit.

        The bounds do not apply to strings.
        """
        number = {
            "type": "integer" if self.whole else "number",
            "minimum": _json(self.low),
            "maximum": _json(self.high),
        }
        made = [number, {"type": "string", "pattern": rf"^\s*{self._pattern()}\s*$"}]
        return {"anyOf": made if self.none is None else [*made, NONE_SCHEMA]}

    def json_schema_of_several(self, most: int) -> dict[str, Any]:
        """Return the schema of a number, a list of numbers, or a string with numbers separated by commas."""
        one, number = self.json_schema(), self._pattern()
        text = {"type": "string", "pattern": rf"^\s*{number}(\s*,\s*{number})*\s*$"}
        return {"anyOf": [one["anyOf"][0], text, {"type": "array", "items": one, "maxItems": most}]}

    def __get_pydantic_json_schema__(self, _core: Any, _handler: Any) -> dict[str, Any]:
        """Return the schema to pydantic."""
        return self.json_schema()

    def _pattern(self) -> str:
        units = "|".join(sorted(self.units, key=lambda unit: (-len(unit), unit)))
        return rf"[+]?{_DIGITS}" + (rf"\s*({units})?" if units else "")

    def _bounds(self, amount: Decimal) -> str:
        if not self.units:
            return f" of {_plain(self.low)} to {_plain(self.high)}"
        return f", at least {_plain(self.low)}" if amount < self.low else f", at most {_plain(self.high)}"

    def _amount(self, value: Any) -> Decimal | None:
        if isinstance(value, str):
            amount = self._from_text(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            amount = Decimal(value)
        else:
            return None
        if amount is None or not amount.is_finite() or (self.whole and amount != int(amount)):
            return None
        return amount

    def _from_text(self, text: str) -> Decimal | None:
        found = _NUMBER.fullmatch(text) if len(text) <= _MAX_TEXT else None
        if found is None:
            return None
        sign, digits, unit = found.groups()
        if len(digits) > 1 and digits[0] == "0" and digits[1] != ".":
            return None  # some readers would read this number as octal, others as decimal
        if unit and unit not in self.units:
            return None
        amount = Decimal(digits.replace("_", "")) * (self.units[unit] if unit else 1)
        return -amount if sign == "-" else amount


def _scaled(units: Mapping[str, int], base: int = 1) -> dict[str, Decimal]:
    return {name: Decimal(size) / base for name, size in units.items()}


def _json(number: Decimal) -> int | float:
    return int(number) if number == int(number) else float(number)


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"


def whole_number(low: int, high: int = 1_000_000_000, what: str = "a whole number") -> Quantity:
    """Return a whole number between two bounds, described as `what`."""
    return Quantity(what, str(max(low, 1)), Decimal(low), Decimal(high))


def byte_size(low: int) -> Quantity:
    """Return a size of at least `low` bytes."""
    units = "bytes or a size with a unit"
    return Quantity(units, "1048576, 100MB or 64KiB", Decimal(low), Decimal(LONG_MAX), _scaled(_SIZES))


MILLISECONDS = Quantity(
    "milliseconds or a duration with a unit",
    "3600000, 1h or 7d",
    Decimal(0),
    Decimal(LONG_MAX),
    _scaled(_DURATIONS_MS),
)
# Durations below a millisecond make no sense for these keys. Ten years is practically unlimited.
SECONDS = Quantity(
    "seconds or a duration with a unit",
    "30, 1.5 or 5min",
    Decimal("0.001"),
    Decimal(10 * 365 * 86_400),
    _scaled(_DURATIONS_MS, _SECOND_MS),
    whole=False,
)


def is_none(value: Any) -> bool:
    """Return whether a value is the word `none`, which means no bound."""
    return isinstance(value, str) and value.strip() == NONE_SCHEMA["const"]


def duration_text(milliseconds: int) -> str:
    """Return a duration in its two largest units, rounded down, such as `2 h 5 min` or `340 ms`."""
    parts: list[str] = []
    left = milliseconds
    for unit, size in (("d", _DAY_MS), ("h", _HOUR_MS), ("min", _MINUTE_MS), ("s", _SECOND_MS), ("ms", 1)):
        amount, left = divmod(left, size)
        if amount or parts:
            parts.append(f"{amount} {unit}" if amount else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts)) or "0 ms"


def format_quantity(value: Any, most: int = 80) -> str:
    """Return a value as messages show it."""
    if isinstance(value, str) and _NUMBER.fullmatch(value[:_MAX_TEXT]) is not None:
        text = value
    else:
        text = repr(value) if isinstance(value, str | int | float | None) else f"a {_KINDS.get(type(value), 'thing')}"
    return text if len(text) <= most else f"{text[:most]}…"


_KINDS: dict[type, str] = {dict: "section", list: "list"}
