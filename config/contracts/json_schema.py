"""Translates a contract's properties to a JSON Schema for values."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from sluicegate.config.files.source import Path

Note = Callable[[Path, str, str], None]
"""Receives the path of a statement that no schema expresses, the statement, and the reason."""


class Translation(NamedTuple):
    """How a contract is translated.

    `note` is called with each property that no schema can express. `time_of` is called with the kind of a time and with
    its schema in JSON. It returns the schema in the data's format.
    """

    note: Note
    time_of: "Callable[[str, dict[str, Any]], dict[str, Any]]"


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TYPES: Final = {
    "string": "string",
    "date": "string",
    "timestamp": "string",
    "time": "string",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "object": "object",
    "map": "object",
    "array": "array",
    "vector": "array",
}
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_KEYWORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern"),
    "number": _BOUNDS,
    "integer": _BOUNDS,
    "object": ("minProperties", "maxProperties", "required"),
    "array": ("minItems", "maxItems", "uniqueItems"),
}
_TIMES: Final = {"date": "date", "timestamp": "date-time", "time": "time"}
_WHOLE_TIMES = frozenset({"int", "integer", "long", "bigint", "int64"})
_OPTIONS_OF_TEXT = ("format", "timezone", "defaultTimezone")
_FORMATS = frozenset({"email", "uuid", "uri", "hostname", "ipv4", "ipv6"})
_ANNOTATIONS = frozenset({"password", "byte", "binary"})
_TIME_OF_A_TYPE: Final = r"^[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?$"
_OFFSET = "(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_ZONES: Final = frozenset("XxZ")
_LENGTH = re.compile(r"\(\s*[0-9]")
_YEAR, _MONTH, _DAY = "[0-9]{4}", "(0[1-9]|1[0-2])", "(0[1-9]|[12][0-9]|3[01])"
_PARTS: Final = {
    "yyyy": _YEAR,
    "uuuu": _YEAR,
    "MM": _MONTH,
    "dd": _DAY,
    "HH": "([01][0-9]|2[0-3])",
    "mm": "[0-5][0-9]",
    "ss": "[0-5][0-9]",
}
_LOCAL_TIME: Final = f"{_PARTS['HH']}:{_PARTS['mm']}:{_PARTS['ss']}(\\.[0-9]+)?"
_LOCAL: Final = {"timestamp": f"{_YEAR}-{_MONTH}-{_DAY}[Tt ]{_LOCAL_TIME}", "time": _LOCAL_TIME}
_PATTERN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")
_RESERVED: Final = frozenset("{}#")


def object_schema(schema: Mapping[str, Any], path: Path, how: Translation) -> dict[str, Any]:
    """Return the JSON Schema of an object. `schema` describes the object, and is at `path` in the contract."""
    return {"$schema": DIALECT, "type": "object", **_properties(schema, path, how)}


def time_as_text(_kind: str, as_json: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of times in JSON data."""
    return as_json


def time_of_a_type(kind: str, as_json: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of times in Avro and Protobuf: that in JSON, or that of a time type that becomes a string."""
    typed = {"format": _TIMES[kind]} if kind != "time" else {"pattern": _TIME_OF_A_TYPE}
    return {"anyOf": [as_json, {"type": "string", **typed}]}


def field_of(element: Mapping[str, Any]) -> str:
    """Return the name of a property in the data."""
    return str(element.get("physicalName") or element["name"])


def _properties(element: Mapping[str, Any], path: Path, how: Translation) -> dict[str, Any]:
    found = {
        field_of(each): _property(each, (*path, "properties", i), how)
        for i, each in enumerate(element.get("properties") or ())
    }
    required = [field_of(each) for each in element.get("properties") or () if each.get("required")]
    made: dict[str, Any] = {}
    if found:
        made["properties"] = found
    if required:
        made["required"] = required
    return made


def _property(element: Mapping[str, Any], path: Path, how: Translation) -> dict[str, Any]:
    kind = element.get("logicalType")
    made: dict[str, Any] = {}
    _note_what_has_no_effect(element, path, how.note)
    if kind is None:
        how.note((*path, "physicalType"), f"type of {element.get('name', 'an item')}", "logicalType is missing")
    else:
        made = _of_type(kind, element, path, how)
    if element.get("enum"):
        made["enum"] = [each["value"] for each in element["enum"]]
    if not element.get("required"):
        if "type" in made:
            made["type"] = [made["type"], "null"]
        elif "anyOf" in made:
            made["anyOf"].append({"type": "null"})
        if "enum" in made and None not in made["enum"]:
            made["enum"].append(None)
    elif kind is None:
        made["type"] = ["string", "number", "boolean", "object", "array"]
    return made


def _note_what_has_no_effect(element: Mapping[str, Any], path: Path, note: Note) -> None:
    name, physical = element.get("name", "an item"), str(element.get("physicalType", ""))
    if element.get("primaryKey"):
        note((*path, "primaryKey"), f"primaryKey of {name}", "keys are not compared; write required and unique")
    if element.get("relationships"):
        note((*path, "relationships"), f"relationships of {name}", "records of other topics are not read")
    if _LENGTH.search(physical):
        why = "physical types have no rule; write logicalTypeOptions (maxLength, multipleOf, ...)"
        note((*path, "physicalType"), f"length in {physical[:100]} of {name}", why)


def _of_type(kind: str, element: Mapping[str, Any], path: Path, how: Translation) -> dict[str, Any]:
    options = element.get("logicalTypeOptions") or {}
    made: dict[str, Any] = {"type": _TYPES[kind]}
    made |= {key: options[key] for key in _KEYWORDS.get(kind, ()) if key in options}
    at = (*path, "logicalTypeOptions")
    if kind in _TIMES:
        return how.time_of(kind, made | _time(kind, element, at, how.note))
    if kind == "string" and "format" in options:
        if options["format"] in _FORMATS:
            made["format"] = options["format"]
        elif options["format"] not in _ANNOTATIONS:
            how.note(
                (*at, "format"), f"format {options['format']} of {element.get('name', 'an item')}", "it is unknown"
            )
    elif kind == "integer" and "format" in options:
        made |= _range_of(options["format"], made)
    elif kind == "number" and "format" in options:
        how.note(
            (*at, "format"), f"format {options['format']} of {element.get('name', 'an item')}", "JSON has one type"
        )
    elif kind == "object":
        inner = _properties(element, path, how)
        inner_required = [*made.get("required", ()), *inner.get("required", ())]
        made |= inner | ({"required": list(dict.fromkeys(inner_required))} if inner_required else {})
    elif kind == "array" and element.get("items") is not None:
        made["items"] = _property(element["items"], (*path, "items"), how)
    elif kind == "map":
        names = {**element["map"]["key"], "required": True}
        made["propertyNames"] = _property(names, (*path, "map", "key"), how)
        made["additionalProperties"] = _property(element["map"]["value"], (*path, "map", "value"), how)
    elif kind == "vector":
        made["items"] = {"type": "number"}
        if "dimensions" in options:
            made |= {"minItems": options["dimensions"], "maxItems": options["dimensions"]}
    return made


def _range_of(name: str, bounds: Mapping[str, Any]) -> dict[str, int]:
    """Return the bounds of the Rust integer type `name`, narrowed by `bounds`."""
    bits = int(name[1:])
    low, high = (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return {"minimum": max(low, bounds.get("minimum", low)), "maximum": min(high, bounds.get("maximum", high))}


def _time(kind: str, element: Mapping[str, Any], at: Path, note: Note) -> dict[str, Any]:
    options = element.get("logicalTypeOptions") or {}
    name = element.get("name", "an item")
    for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if key in options:
            note((*at, key), f"{key} of {name}", "times are not compared")
    physical = str(element.get("physicalType", "")).lower()
    if physical in _WHOLE_TIMES:
        for key in _OPTIONS_OF_TEXT:
            if key in options:
                note((*at, key), f"{key} of {name}", f"times are whole numbers by physicalType {physical}")
        return {"type": "integer"}
    pattern, zoned = options.get("format"), options.get("timezone")
    if pattern is None:
        return _time_in_iso_8601(kind, zoned, "defaultTimezone" in options)
    expression = _expression(pattern)
    if expression is None:
        note((*at, "format"), f"format {pattern} of {name}", "the format has parts that are not supported")
        return {}
    letters = {found.group(2) for found in _PATTERN.finditer(pattern)}
    if zoned is not None and zoned != bool(letters & _ZONES):
        note((*at, "timezone"), f"timezone of {name}", f"format {pattern} decides")
    return {"pattern": expression, "description": f"the format {pattern}"}


def _time_in_iso_8601(kind: str, zoned: bool | None, has_default_zone: bool) -> dict[str, Any]:
    """Return the schema of a time without a format.

    `zoned` is whether the string has an offset, or None if the contract does not specify it. In that case, a timestamp
    must have an offset and a time must not. If the contract has a default time zone, both may have one.
    """
    if kind == "date":
        return {"format": "date"}
    if zoned is None and has_default_zone:
        return {"pattern": f"^{_LOCAL[kind]}{_OFFSET}?$", "description": _in_words(kind, "perhaps with")}
    if kind == "timestamp" and zoned is not False:
        return {"format": "date-time"}
    words = _in_words(kind, "with" if zoned else "without")
    return {"pattern": f"^{_LOCAL[kind]}{_OFFSET if zoned else ''}$", "description": words}


def _in_words(kind: str, how: str) -> str:
    return f"a {kind} in ISO 8601 {how} an offset"


def _expression(pattern: str) -> str | None:
    """Return the regular expression for a pattern of Java's DateTimeFormatter, or None if a part of it is unknown."""
    parts: list[str] = []
    depth = 0
    for found in _PATTERN.finditer(pattern):
        text, letter = found.group(), found.group(2)
        part: str | None = re.escape(text)
        if found.group(1) is not None:
            part = re.escape(found.group(1).replace("''", "'") or "'")
        elif text == "[":
            part, depth = "(", depth + 1
        elif text == "]":
            part, depth = ")?", depth - 1
        elif letter == "S":
            part = f"[0-9]{{{len(text)}}}"
        elif letter in _ZONES:
            part = _OFFSET
        elif text in _RESERVED:
            part = None
        elif letter is not None and text != "T":
            part = _PARTS.get(text)
        if part is None or depth < 0:
            return None
        parts.append(part)
    return f"^{''.join(parts)}{')?' * depth}$"  # Java closes open optional sections at the end
