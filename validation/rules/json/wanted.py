"""Describes what a JSON Schema's keyword requires, as a phrase."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

_MOST_SHOWN = 100
_MOST_VISITED = 1_000
_COUNTED: Final = {
    "minLength": ("at least", "character"),
    "maxLength": ("at most", "character"),
    "minItems": ("at least", "item"),
    "maxItems": ("at most", "item"),
    "minProperties": ("at least", "property"),
    "maxProperties": ("at most", "property"),
}
_BOUNDS: Final = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "enum": "one of",
    "const": "equal to",
}
_LISTS_IN_PLACE: Final = ("allOf", "anyOf", "oneOf")
_ONE_IN_PLACE: Final = ("if", "then", "else")


def wanted_phrase(keyword: str, value: Any) -> str | None:
    """Return what a keyword with this value requires, or None if there is no phrase for the keyword."""
    if keyword == "required":
        return f"the property {schema_value_text(value)} is missing"
    if keyword == "format":
        return f"must have the format {schema_value_text(value)}"
    if keyword == "pattern":
        return f"must match {schema_value_text(value)}"
    if keyword == "uniqueItems":
        return "items must be unique"
    if keyword in _BOUNDS:
        return f"must be {_BOUNDS[keyword]} {schema_value_text(value)}"
    if keyword in _COUNTED:
        bound, unit = _COUNTED[keyword]
        plural = f"{unit.removesuffix('y')}ies" if unit.endswith("y") else f"{unit}s"
        return f"must have {bound} {schema_value_text(value)} {unit if value == 1 else plural}"
    return None


def schema_value_text(value: Any) -> str:
    """Return a schema's value as a string."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


def allowed_names(schema: Mapping[str, Any], root: Any, looks_in_place: bool) -> Iterator[str]:
    """Yield the property names that an object schema allows, and descriptions of the name patterns that it allows.

    If `looks_in_place`, also yields those of schemas that apply to the same value, as for `unevaluatedProperties`.
    """
    waiting, seen = [schema], set[int]()
    while waiting and len(seen) < _MOST_VISITED:
        part = waiting.pop(0)
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        named, patterns = part.get("properties"), part.get("patternProperties")
        yield from named if isinstance(named, dict) else ()
        yield from (
            f"names that match {schema_value_text(each)}" for each in (patterns if isinstance(patterns, dict) else ())
        )
        if looks_in_place:
            for keyword in _LISTS_IN_PLACE:
                waiting += part[keyword] if isinstance(part.get(keyword), list) else []
            waiting += [part[keyword] for keyword in _ONE_IN_PLACE if keyword in part]
            dependent = part.get("dependentSchemas")
            waiting += dependent.values() if isinstance(dependent, dict) else ()
            if isinstance(part.get("$ref"), str):
                waiting.append(_referred(part["$ref"], root))


def _referred(reference: str, root: Any) -> Any:
    """Return the schema that a reference within the document points to, or None."""
    found = root
    for step in reference.removeprefix("#").split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, dict) else None
    return found if reference.startswith("#") else None
