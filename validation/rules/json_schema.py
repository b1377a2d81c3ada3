"""A JSON Schema as a rule asks it: drafts 4 to 2020-12, with formats. Nothing that it names is fetched."""

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from sluicegate.validation.rules.content import SchemaUnusable
from sluicegate.validation.rules.json_schema_plan import json_schema_plan
from sluicegate.validation.rules.json_schema_recursion import deepest_for
from sluicegate.validation.rules.json_text import WELL_FORMED, Fault, fault_in, which
from sluicegate.validation.rules.json_weight import MOST_WEIGHT, is_too_heavy, words_for_more_than
from sluicegate.validation.rules.json_words import words_for
from sluicegate.validation.rules.ordinary_questions import BytesQuestion, JsonSchemaQuestion
from sluicegate.validation.rules.ordinary_reading import follows_of
from sluicegate.validation.rules.rule import CONSTANT_STEPS

MAX_DEPTH = 255
"""What jsonschema-rs follows where it has to compare."""

_MOST_SHOWN = 3
_MOST_LOOKED_AT = 100
# All that is wrong is found, with what it is wrong with, before the first is told: of more that takes seconds.
_MOST_TOLD_BYTES, _MOST_TOLD_WEIGHT = 64 << 10, 5_000
# With one of these a value may take far longer than its size says.
_SLOW_KEYWORDS: Final = frozenset(
    {"pattern", "patternProperties", "uniqueItems", "contains", "oneOf", "anyOf", "allOf", "not", "if", "format"}
    | {"$ref", "$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems", "dependentSchemas"}
)
_REGEX_BYTES = 10 << 20


class JsonSchemaContent:
    """Bytes are strict JSON that a schema takes. What is wrong is told by path and keyword, the first three of all."""

    def __init__(self, schema: Any, references: Mapping[str, Any]) -> None:
        jsonschema_rs, orjson = _libraries()
        self._loads = orjson.loads
        self._unreadable = orjson.JSONDecodeError
        try:
            self._validator = jsonschema_rs.validator_for(
                schema,
                validate_formats=True,
                retriever=_from(references),
                pattern_options=jsonschema_rs.RegexOptions(size_limit=_REGEX_BYTES),
            )
        except Exception as error:  # ValidationError, ReferencingError, and ValueError of what it names
            raise SchemaUnusable(f"it is no JSON Schema that can be used: {_first_line(error)}") from error
        self._is_valid = self._validator.is_valid
        self._properties = frozenset(_properties_of(schema)).union(*map(_properties_of, references.values()))
        self.is_slow = any(key in _SLOW_KEYWORDS for key in _keys_of(schema))
        self._deepest = deepest_for(schema, references, MAX_DEPTH)
        self._plan = json_schema_plan(schema)
        self._follows = follows_of(self._plan)
        title = schema.get("title") if isinstance(schema, dict) else None
        self._title = title if isinstance(title, str) else None

    def record_name(self, _data: bytes) -> str | None:
        return self._title

    def ordinary(self, behind: int) -> BytesQuestion | None:
        """All of it, where the schema says nothing unusual."""
        return None if self._plan is None else BytesQuestion(schemas=(JsonSchemaQuestion(self._plan, behind),))

    def steps(self, _data: bytes) -> int:
        """What is expensive is bounded by itself."""
        return CONSTANT_STEPS

    def fault(self, data: bytes) -> str | None:
        if self._follows(data):
            return None
        if is_too_heavy(data):
            return f"is {words_for_more_than(MOST_WEIGHT)}"
        if self._is_too_deep(data):
            return f"is JSON deeper than {self._deepest} levels, and its schema's alternatives lead back to itself"
        try:
            value = self._loads(data)
        except self._unreadable:
            return _why_unreadable(data)
        try:
            if self._is_valid(value):
                return None
            if len(data) > _MOST_TOLD_BYTES or is_too_heavy(data, _MOST_TOLD_WEIGHT):
                return "does not follow its JSON Schema; it is too large to say where; try a part of it"
            return self._words(value)
        except ValueError:  # the one limit that validating has
            return f"is JSON nested more than {MAX_DEPTH} levels deep"

    def explanation(self, _data: bytes) -> str | None:
        """Its fault is all of it."""
        return None

    def _is_too_deep(self, data: bytes) -> bool:
        if self._deepest == MAX_DEPTH:
            return False
        fault = fault_in(data, self._deepest)
        return fault != WELL_FORMED and which(fault) is Fault.TOO_DEEP

    def _words(self, value: Any) -> str:
        shown: list[str] = []
        more = 0
        for error in self._validator.iter_errors(value):
            if len(shown) < _MOST_SHOWN:
                shown.append(self._told(error))
            else:
                more += 1
            if more == _MOST_LOOKED_AT:
                break
        also = f"; and {more}{' or more' if more == _MOST_LOOKED_AT else ''} others" if more else ""
        return f"does not follow its JSON Schema: {'; '.join(shown)}{also}"

    def _told(self, error: Any) -> str:
        """Where and which keyword. A property's name is told only where the schema has it: others are the client's."""
        path = "".join(f"/{part if self._is_known(part) else '…'}" for part in error.instance_path) or "the root"
        name = error.kind.name
        wants = ""
        if name in _TOLD:
            wants = f" ({json.dumps(error.kind.value, ensure_ascii=False, default=str)[:100]})"
        return f"{path[:200]}: {name}{wants}"

    def _is_known(self, part: str | int) -> bool:
        return isinstance(part, int) or part in self._properties


# Keywords whose value, which is the schema's, says what to do.
_TOLD: Final = frozenset(
    {"type", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"}
    | {"maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "format", "pattern", "enum", "const"}
)


def _why_unreadable(data: bytes) -> str:
    fault = fault_in(data, MAX_DEPTH)
    if fault != WELL_FORMED:
        return f"is {words_for(fault)}"
    return "is JSON with half a character in a string (a lone surrogate), which no reader can use"


def json_schema_content(text: str, references: Mapping[str, str] | None = None) -> JsonSchemaContent:
    """Compile a schema. `references`: those that it may name, by the name it has for them. Raises SchemaUnusable."""
    others = {name: _read(other) for name, other in (references or {}).items()}
    return JsonSchemaContent(_read(text), others)


def _read(text: str) -> Any:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaUnusable(f"it is not JSON: {_first_line(error)}") from error
    if not isinstance(schema, dict | bool):
        raise SchemaUnusable("a JSON Schema is an object, or true or false")
    return schema


def _libraries() -> tuple[Any, Any]:
    try:
        return import_module("jsonschema_rs"), import_module("orjson")
    except ImportError:
        raise SchemaUnusable("JSON Schema needs jsonschema-rs and orjson: pip install 'sluicegate[rules]'") from None


def _from(references: Mapping[str, Any]) -> Any:
    """Finds what a schema names among what was given; relative names have been made whole before it is asked."""

    def retrieve(uri: str) -> Any:
        for name, schema in references.items():
            if uri == name or uri.endswith("/" + name):
                return schema
        raise ValueError(f"it names {uri[:200]}, and nothing is fetched; put what it needs under $defs")

    return retrieve


def _properties_of(schema: Any) -> Iterator[str]:
    """Every name that a schema has for a property."""
    for part in _objects_of(schema):
        for keyword in ("properties", "dependentRequired", "dependentSchemas"):
            names = part.get(keyword)
            if isinstance(names, dict):
                yield from names
        required = part.get("required")
        if isinstance(required, list):
            yield from (name for name in required if isinstance(name, str))


def _keys_of(schema: Any) -> Iterator[str]:
    for part in _objects_of(schema):
        yield from part


def _objects_of(schema: Any) -> Iterator[dict[str, Any]]:
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:300]
