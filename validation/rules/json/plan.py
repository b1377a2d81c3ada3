"""Compiles a JSON Schema to a plan for native.pyx if native code can check all its keywords, and calls native.pyx.

These keywords are types, properties, items, bounds, lengths and enums. Most schemas of records need no others. A schema
with any other keyword has no plan, and only jsonschema-rs checks it. Without compiled code, all checks fall back.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

NULL, BOOLEAN, INTEGER, NUMBER, STRING, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32, 64
ANYTHING: Final = 127
_TYPES: Final = {
    "null": NULL,
    "boolean": BOOLEAN,
    "integer": INTEGER,
    "number": INTEGER | NUMBER,
    "string": STRING,
    "array": ARRAY,
    "object": OBJECT,
}
# Annotations, which validate nothing.
_ANNOTATIONS: Final = frozenset(
    {"$schema", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
    | {"$defs", "definitions"}
)
_CHECKED: Final = frozenset(
    {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
    }
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const"}
)
_MOST_PARTS = 10_000
_MOST_REQUIRED = 64  # each name uses a bit
_LARGEST = (1 << 62) - 1
_DEEPEST = 100

WHATEVER, NOTHING = 0, -1
"""Positions in a plan: the part that accepts any value, and no part."""


@dataclass(slots=True)
class SchemaPart:
    """The checks of a value.

    `least` and `most` are a number's bounds, as integers. `items` and `additional` are positions of parts. `names`
    contains each property with its position and its bit in `required`. The bit is 0 if the property is optional.
    `words` contains the allowed strings; None means any.
    """

    types: int = ANYTHING
    least: int = -_LARGEST
    most: int = _LARGEST
    min_length: int = 0
    max_length: int = _LARGEST
    min_items: int = 0
    max_items: int = _LARGEST
    items: int = WHATEVER
    additional: int = WHATEVER
    names: list[tuple[bytes, int, int]] = field(default_factory=list)
    required: int = 0
    words: list[bytes] | None = None


@dataclass(frozen=True, slots=True)
class JsonSchemaPlan:
    """A schema's parts, which refer to each other by position. `root` is the part of the whole schema."""

    parts: tuple[SchemaPart, ...]
    root: int


class _Unplanned(Exception):
    """Raised if the schema contains a keyword that native code does not check."""


def json_schema_plan(schema: Any) -> JsonSchemaPlan | None:
    """Return the plan of a valid JSON Schema, or None if jsonschema-rs must check it."""
    planner = _Planner(schema)
    try:
        root = planner.part(schema, 0, True)
    except _Unplanned:
        return None
    return JsonSchemaPlan(tuple(planner.parts), root)


class _Planner:
    def __init__(self, schema: Any) -> None:
        self.parts = [SchemaPart()]
        self._schema = schema
        self._referred: dict[str, int] = {}

    def part(self, schema: Any, depth: int, is_root: bool = False) -> int:
        """Add a schema's part and return its position."""
        if schema is True or schema == {}:
            return WHATEVER
        if schema is False:
            return NOTHING
        if not isinstance(schema, dict) or depth > _DEEPEST or len(self.parts) >= _MOST_PARTS:
            raise _Unplanned
        asked = schema.keys() - _ANNOTATIONS - ({"$id"} if is_root else set())
        if asked == {"$ref"}:
            return self._refer(schema["$ref"], depth)
        if asked - _CHECKED:
            raise _Unplanned
        at = len(self.parts)
        self.parts.append(SchemaPart())
        self._fill(self.parts[at], schema, depth)
        return at

    def _refer(self, reference: Any, depth: int) -> int:
        """Resolve a reference with a plain name to a definition in the same schema."""
        begin, _, name = str(reference).rpartition("/")
        found = self._schema.get(begin[2:]) if begin in ("#/$defs", "#/definitions") else None
        if not isinstance(found, Mapping) or not name.isidentifier() or name not in found:
            raise _Unplanned
        if reference not in self._referred:
            target = found[name]
            if not isinstance(target, dict) or "$ref" in target or not target:
                raise _Unplanned
            self._referred[reference] = len(self.parts)  # set first, for references within the definition itself
            self.part(target, depth + 1)
        return self._referred[reference]

    def _fill(self, part: SchemaPart, schema: Mapping[str, Any], depth: int) -> None:
        part.types = _types(schema.get("type"))
        _fill_number(part, schema)
        part.min_length, part.max_length = _count(schema, "minLength", 0), _count(schema, "maxLength", _LARGEST)
        part.min_items, part.max_items = _count(schema, "minItems", 0), _count(schema, "maxItems", _LARGEST)
        if isinstance(schema.get("items"), list):
            raise _Unplanned
        part.items = self.part(schema.get("items", True), depth + 1)
        part.additional = self.part(schema.get("additionalProperties", True), depth + 1)
        self._fill_names(part, schema, depth)
        words = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if words is not None:
            if not isinstance(words, list) or ("enum" in schema and "const" in schema):
                raise _Unplanned
            # Other words may also be allowed. Values with these fall back.
            part.words = [word.encode() for word in words if isinstance(word, str) and _is_plain(word)]

    def _fill_names(self, part: SchemaPart, schema: Mapping[str, Any], depth: int) -> None:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, dict) or not isinstance(required, list) or len(required) > _MOST_REQUIRED:
            raise _Unplanned
        bits = {name: 1 << place for place, name in enumerate(dict.fromkeys(required))}
        part.required = sum(bits.values())
        for name in dict.fromkeys((*properties, *required)):
            if not isinstance(name, str) or not _is_plain(name):
                raise _Unplanned
            place = self.part(properties[name], depth + 1) if name in properties else part.additional
            part.names.append((name.encode(), place, bits.get(name, 0)))


def _types(given: Any) -> int:
    if given is None:
        return ANYTHING
    found = 0
    for name in given if isinstance(given, list) else [given]:
        if not isinstance(name, str) or name not in _TYPES:
            raise _Unplanned
        found |= _TYPES[name]
    return found


def _fill_number(part: SchemaPart, schema: Mapping[str, Any]) -> None:
    """Round fractional bounds to the narrower integer. Numbers outside the rounded bounds fall back."""
    for name, step in (("minimum", 0), ("exclusiveMinimum", 1)):
        if name in schema:
            bound = _bound(schema[name])
            part.least = max(part.least, math.floor(bound) + 1 if step else math.ceil(bound))
    for name, step in (("maximum", 0), ("exclusiveMaximum", 1)):
        if name in schema:
            bound = _bound(schema[name])
            part.most = min(part.most, math.ceil(bound) - 1 if step else math.floor(bound))


def _bound(given: Any) -> int | float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not -_LARGEST < given < _LARGEST:
        raise _Unplanned
    return given


def _count(schema: Mapping[str, Any], name: str, default: int) -> int:
    given = schema.get(name, default)
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= _LARGEST:
        raise _Unplanned
    return given


def _is_plain(text: str) -> bool:
    """Return whether JSON may contain the string without escapes. Escaped forms fall back."""
    return not any(character in '"\\' or character < " " or "\ud800" <= character <= "\udfff" for character in text)


_LONGEST_RUN = 32

HAS_NATIVE = False
with suppress(ImportError):
    from sluicegate.validation.rules.json import native as native_json

    HAS_NATIVE = True


def is_ordinary_json(text: bytes, max_depth: int) -> bool:
    """Return whether the bytes are JSON with at most `max_depth` nested arrays and objects. False means fall back."""
    return HAS_NATIVE and native_json.is_ordinary(text, max_depth)


def check_of_plan(plan: JsonSchemaPlan | None) -> Callable[[bytes], bool]:
    """Return a function that checks whether bytes are plainly valid for the plan. Its result False means fall back."""
    return native_json.OrdinaryJsonSchema(plan).takes if HAS_NATIVE and plan is not None else _fall_back


def has_short_hash_runs(plan: JsonSchemaPlan) -> bool:
    """Return whether a plan's hash tables have no long runs. A hostile schema may make all names collide."""
    return not HAS_NATIVE or native_json.OrdinaryJsonSchema(plan).longest_run <= _LONGEST_RUN


def _fall_back(_data: bytes) -> bool:
    return False
