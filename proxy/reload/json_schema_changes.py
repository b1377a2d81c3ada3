"""Compares two JSON Schemas keyword by keyword, and finds what becomes stricter or looser for values."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

Change = tuple[str, bool | None]
"""A change's description, and whether it is stricter (True) or looser (False).

None means that it is neither, or that this is unknown.
"""

_UPPER: Final = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_LOWER: Final = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_SETS: Final = frozenset({"type", "enum"})
_INNER: Final = frozenset({"items", "additionalProperties", "propertyNames"})
_NONE = "none"


def changes_of(before: Any, after: Any, where: str = "") -> Iterator[Change]:
    """Yield each change between two schemas at `where`, the path of a property.

    Equal schemas have no changes.
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        if before != after:
            yield f"{where or 'the schema'} changed", None
        return
    for key in dict.fromkeys((*after, *before)):
        was, is_now = before.get(key), after.get(key)
        if was == is_now and type(was) is type(is_now):
            continue
        if key == "properties":
            yield from _properties(was or {}, is_now or {}, where)
        elif key in _INNER:
            yield from changes_of({} if was is None else was, {} if is_now is None else is_now, _below(where, key))
        elif key == "required":
            yield from _required(was or [], is_now or [], where)
        else:
            yield f"{_below(where, key)} {_shown(was)} -> {_shown(is_now)}", _is_stricter(key, was, is_now)


def _properties(before: Mapping[str, Any], after: Mapping[str, Any], where: str) -> Iterator[Change]:
    for name in dict.fromkeys((*after, *before)):
        if name not in before:
            yield f"{_below(where, name)} added", True if after[name] else None
        elif name not in after:
            yield f"{_below(where, name)} removed", False if before[name] else None
        else:
            yield from changes_of(before[name], after[name], _below(where, name))


def _required(before: list[str], after: list[str], where: str) -> Iterator[Change]:
    for name in dict.fromkeys((*after, *before)):
        if name not in before or name not in after:
            words = "required" if name in after else "no longer required"
            yield f"{_below(where, name)} {words}", name in after


def _is_stricter(key: str, before: Any, after: Any) -> bool | None:
    if before is None or after is None:  # a keyword that is present is a condition
        return before is None
    if key in _UPPER or key in _LOWER:
        return (after < before) is (key in _UPPER) if _are_numbers(before, after) else None
    if key in _SETS:
        old, new = (_values_of(key, each) for each in (before, after))
        less, more = all(value in old for value in new), all(value in new for value in old)
        return None if less is more else less
    return None


def _values_of(key: str, given: Any) -> list[Any]:
    """Return the values or the types. The type number includes integer."""
    values = [*given] if isinstance(given, list) else [given]
    return [*values, "integer"] if key == "type" and "number" in values else values


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _below(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return _NONE if value is None else str(value)
