"""Translates a contract's quality attributes to rules for single records, or to checks over all stored records."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from sluicegate.config.contracts.json_schema import DIALECT
from sluicegate.config.values.contract import Metric, StoredCheck

_OPERATORS: Final = (
    "mustBe",
    "mustNotBe",
    "mustBeGreaterThan",
    "mustBeGreaterOrEqualTo",
    "mustBeLessThan",
    "mustBeLessOrEqualTo",
    "mustBeBetween",
    "mustNotBeBetween",
)
_NOT_NULL: Final = ["string", "number", "boolean", "object", "array"]
_OF_ONE_RECORD: Final = frozenset({Metric.NULLS, Metric.MISSING, Metric.INVALID})
_LEVELS_OF_WARNINGS: Final = frozenset({"info", "warning", "warn"})


class NotTranslated(ValueError):
    """Raised for a quality attribute that neither the proxy nor an audit can check. The message is the reason."""


@dataclass(frozen=True, slots=True)
class Quality:
    """A quality attribute in a contract.

    `field` is the path of its property in the data; an empty path means the whole object. `is_text` is whether the
    property is a string.
    """

    keys: Mapping[str, Any]
    field: tuple[str, ...]
    place: str
    is_text: bool = True

    @property
    def name(self) -> str:
        """Return the attribute's name, or else its id, or else the property to which it applies."""
        given = self.keys.get("name") or self.keys.get("id")
        what = str(self.keys.get("metric") or self.keys.get("rule") or self.keys.get("type") or "library")
        return str(given) if given else ".".join((*self.field, what))

    @property
    def is_a_warning(self) -> bool:
        """Return whether the attribute's severity is a warning."""
        return str(self.keys.get("severity", "")).lower() in _LEVELS_OF_WARNINGS

    def check(self, names: Mapping[str, tuple[str, ...]]) -> StoredCheck:
        """Return the attribute as a check of all stored records.

        `names` contains the path of each property in the attribute's object. Raises NotTranslated.
        """
        kind = self.keys.get("type") or "library"
        if kind != "library":
            raise NotTranslated(f"checks of type {kind} are not supported")
        if "metric" not in self.keys:
            raise NotTranslated("rule is deprecated since version 3.1; write metric")
        metric = Metric(self.keys["metric"])
        operator = next(key for key in _OPERATORS if key in self.keys)
        given = self.keys[operator]
        limit = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
        if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in limit):
            raise NotTranslated(f"{operator} is not a number")
        unit = self.keys.get("unit") or "rows"
        if unit not in ("rows", "percent"):
            raise NotTranslated(f"the unit is {unit}; expected rows or percent")
        values, pattern = _arguments_of(metric, self.keys.get("arguments") or {})
        return StoredCheck(
            self.name,
            metric,
            operator,
            limit,
            self.place,
            self._fields_of(metric, names),
            values,
            pattern,
            unit == "percent",
        )

    def _fields_of(self, metric: Metric, names: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
        if self.field or metric is Metric.ROWS:
            return (self.field,) if self.field else ()
        given = (self.keys.get("arguments") or {}).get("properties")
        if metric is not Metric.DUPLICATES or not isinstance(given, list) or not given:
            raise NotTranslated("the check names no property")
        unknown = [str(name)[:100] for name in given if not isinstance(name, str) or name not in names]
        if unknown:
            raise NotTranslated(f"the schema has no property {unknown[0]}")
        return tuple(names[name] for name in given)


def _arguments_of(metric: Metric, arguments: Mapping[str, Any]) -> tuple[tuple[Any, ...] | None, str | None]:
    """Return a metric's values and pattern. Raises NotTranslated."""
    if metric is Metric.MISSING:
        values, pattern = arguments.get("missingValues"), None
    elif metric is Metric.INVALID:
        values, pattern = arguments.get("validValues"), arguments.get("pattern")
    else:
        return None, None
    if values is None and pattern is None:
        missing = "missingValues" if metric is Metric.MISSING else "validValues or pattern is missing"
        raise NotTranslated(f"the arguments have {'no ' if metric is Metric.MISSING else ''}{missing}")
    if values is not None and not isinstance(values, list):
        raise NotTranslated("the values are not a list")
    return None if values is None else tuple(values), None if pattern is None else str(pattern)


def schema_for_one_record(check: StoredCheck, is_text: bool = True) -> dict[str, Any] | None:
    """Return a JSON Schema that every record must match to pass the check.

    Returns None if a single record cannot show a violation. `is_text` is whether the property is a string, which a
    schema can compare with a pattern.
    """
    if check.metric not in _OF_ONE_RECORD or not _allows_none(check) or (check.pattern is not None and not is_text):
        return None
    (field,) = check.fields
    must_exist = check.metric is Metric.NULLS
    good: dict[str, Any] = {}
    if check.metric is Metric.NULLS:
        good["type"] = _NOT_NULL
    elif check.metric is Metric.MISSING:
        must_exist = None in (check.values or ())
        good["not"] = {"enum": _of_same_text(check.values or ())}
    else:
        if check.values is not None:
            good["enum"] = _of_same_text((*check.values, None))
        if check.pattern is not None:
            good["pattern"] = check.pattern
    for name in reversed(field):
        good = {"properties": {name: good}}
        if must_exist:  # an absent field in an object counts as null
            good |= {"type": "object", "required": [name]}
    return {"$schema": DIALECT, **good}


def _of_same_text(values: Sequence[Any]) -> list[Any]:
    """Return the values, and the values of other types with the same string form: 5 for "5", and "5" for 5.0."""
    found: dict[tuple[type, Any], Any] = {}
    for value in values:
        others = [value]
        if isinstance(value, str):
            with suppress(ValueError, OverflowError, RecursionError):
                read = json.loads(value)
                others += [read] if isinstance(read, bool | int | float) and _text_of(read) == value else []
        elif isinstance(value, bool | int | float):
            others.append(_text_of(value))
        found |= {(type(each), str(each)): each for each in others}
    return list(found.values())


def _text_of(value: float) -> str:
    """Return the string form of a boolean, or of a number without an exponent: 5, 5.0 and 5e0 have the same."""
    if isinstance(value, bool) or value == int(value):
        return json.dumps(value if isinstance(value, bool) else int(value))
    return f"{Decimal(repr(value)):f}"


def _allows_none(check: StoredCheck) -> bool:
    """Return whether the check passes only for a count of 0."""
    (limit, *_) = check.limit
    if check.operator == "mustBe":
        return limit == 0
    if check.operator == "mustBeLessOrEqualTo":
        return 0 <= limit < 1 and not (check.percent and limit > 0)
    return check.operator == "mustBeLessThan" and 0 < limit <= 1 and not check.percent
