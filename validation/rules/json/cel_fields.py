"""Visits JSON properties for a registry's conditions on fields (cel/fields.py), as Confluent's client does.

The visit follows `properties`, `items`, `$ref`, `allOf`, the first matching schema of `oneOf`, and every matching
schema of `anyOf`. If a schema has several types, it follows the first type that matches the value. It visits neither
null nor properties that the schema does not name.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote

from sluicegate.validation.rules.cel.fields import FieldVisit, SchemaField
from sluicegate.validation.rules.cel.runtime import (
    ANY_TYPE,
    CompiledExpression,
    ExpressionUnusable,
    compiled,
    field_environment,
)
from sluicegate.validation.rules.cel.steps import DENSEST_BYTE
from sluicegate.validation.rules.cel.variables import NotOfSchema, TextWithZero, value_of
from sluicegate.validation.rules.json.graph import Documents, Unclear
from sluicegate.validation.rules.rule import UNBOUNDED, SchemaError
from sluicegate.validation.rules.schemas.field_tags import TAGS, inline_tags

ROOT: Final = "json-schema:///sluicegate-root"
"""The name of the outermost schema in the schemas that `validator_for` receives."""
_TYPE_NAMES: Final = {"string": "STRING", "integer": "INT", "number": "DOUBLE", "boolean": "BOOLEAN"}
_DESCRIPTIVE: Final = frozenset(
    {"type", "title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly", TAGS}
)
_COMBINING: Final = ("allOf", "oneOf", "anyOf")
_MOST_SHOWN = 200
NOT_FOLLOWED: Final = "the fields cannot be found, because a reference in the schema cannot be followed"
Validator = Any


class JsonFields:
    """A visitor of the properties in one schema's values (`FieldValues`)."""

    def __init__(self, schema: Any, references: Mapping[str, Any], validator_for: Callable[[Any], Validator]) -> None:
        """Create a visitor for the schema. `references` contains the referenced schemas, by their names in it.

        `validator_for` compiles a schema that refers to them. Raises ExpressionUnusable if a reference is unclear.
        """
        self._schema = schema
        try:
            self._documents = Documents(schema, references)
        except Unclear:
            raise ExpressionUnusable(NOT_FOLLOWED) from None
        self._loads = import_module("orjson").loads
        self._alternatives = Alternatives(schema, references, validator_for)

    def compiled(self, expression: str) -> CompiledExpression:
        return compiled(expression, field_environment(), ANY_TYPE)

    def estimate_reading(self, data: bytes) -> tuple[int, int, int]:
        size = len(data)
        reading = UNBOUNDED if self._alternatives.are_validated else size * DENSEST_BYTE
        return size // 2 + 1, size + 1, reading

    def visit(self, data: bytes, visit: FieldVisit) -> None:
        """Visit the named properties of all objects. Raises SchemaError if the schema cannot be followed."""
        value = value_of(data, self._loads)
        if isinstance(value, bytearray):  # not JSON
            raise NotOfSchema
        try:
            _Walk(self._documents, self._alternatives, visit).value(self._schema, "", value, "$", None, None)
        except Unclear:
            raise SchemaError(NOT_FOLLOWED) from None


class _Walk:
    """A walk over one value. Its methods return the condition's result for a value, or the value itself."""

    def __init__(self, documents: Documents, alternatives: "Alternatives", visit: FieldVisit) -> None:
        self._documents = documents
        self._alternatives = alternatives
        self._visit = visit

    def value(
        self,
        schema: Any,
        document: str,
        value: Any,
        path: str,
        field: SchemaField | None,
        message: Any,
        kind: Any = None,
    ) -> Any:
        """Visit a value of `field` in `message`.

        If the schema has several types, `kind` is the value's type.
        """
        if value is None or not isinstance(schema, dict):
            return value
        self._visit.step()
        kind = kind or schema.get("type")
        place = (path, field, message)
        if isinstance(kind, list):
            chosen = self._alternatives.type_of(schema, kind, value)
            if chosen is not None:
                return self.value(schema, document, value, path, field, message, chosen)
        if any(schema.get(keyword) is not None for keyword in _COMBINING):
            return self._combined(schema, document, value, *place)
        items = schema.get("items")
        if items is not None and isinstance(value, list):
            return [self.value(items, document, item, *place) for item in value]
        if isinstance(schema.get("$ref"), str):
            target, its_document = self._documents.target(schema["$ref"], document)
            return self.value(target, its_document, value, path, field, message)
        if schema.get("const") is not None or schema.get("enum") is not None:
            return value
        if isinstance(kind, str) and kind in _TYPE_NAMES:
            return self._visit.value(field, _TYPE_NAMES[kind], value, lambda: message)
        if kind not in ("array", "null"):
            self._properties(schema, document, value, path)
        return value

    def _combined(
        self, schema: dict[str, Any], document: str, value: Any, path: str, field: SchemaField | None, message: Any
    ) -> Any:
        """Visit a value with each schema of a combining keyword, passing each schema the result of the previous one."""
        keyword = next(each for each in _COMBINING if schema.get(each) is not None)
        for each in _list(schema[keyword]):
            target, its_document = each, document
            if keyword != "allOf":
                if isinstance(each, dict) and isinstance(each.get("$ref"), str):
                    target, its_document = self._documents.target(each["$ref"], document)
                if not self._alternatives.accepts(target, value):
                    continue
            value = self.value(target, its_document, value, path, field, message)
            if keyword == "oneOf":
                break
        self._properties(schema, document, value, path)
        items = schema.get("items")
        if items is not None and isinstance(value, list):
            return [self.value(items, document, item, path, field, message) for item in value]
        return value

    def _properties(self, schema: dict[str, Any], document: str, value: Any, path: str) -> None:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not isinstance(value, dict):
            return
        for name, inner in properties.items():
            if isinstance(inner, dict):
                full_name = f"{path}.{name}"
                field = self._visit.field(full_name, name, partial(inline_tags, inner))
                found = self.value(inner, document, value.get(name), full_name, field, value)
                self._visit.check(field, found)


class Alternatives:
    """A helper that finds which of several schemas or types a value matches.

    `are_validated` is whether it must validate values to find this, which may take long.
    """

    def __init__(self, schema: Any, references: Mapping[str, Any], validator_for: Callable[[Any], Validator]) -> None:
        self._documents = {ROOT: schema, **{f"json-schema:///{name}": each for name, each in references.items()}}
        self._validator_for = validator_for
        self._draft = schema.get("$schema") if isinstance(schema, dict) else None
        self._validators: dict[tuple[int, str], Validator] = {}
        self._names: dict[int, str] = {}
        self.are_validated = False
        for name, document in self._documents.items():
            self._index(document, f"{name}#")

    def type_of(self, schema: dict[str, Any], types: list[Any], value: Any) -> str | None:
        """Return the first type with which a value is valid against its schema."""
        for each in types:
            if isinstance(each, str) and (
                _is_of(each, value) if schema.keys() <= _DESCRIPTIVE else self._is_valid(schema, each, value)
            ):
                return each
        return None

    def accepts(self, schema: Any, value: Any) -> bool:
        """Return whether a value is valid against a part of the schema. Here, true and false are not schemas."""
        return isinstance(schema, dict) and self._is_valid(schema, "", value)

    def _is_valid(self, schema: dict[str, Any], kind: str, value: Any) -> bool:
        key = id(schema), kind
        validator = self._validators.get(key)
        if validator is None:
            wanted = [{"$ref": self._names[id(schema)]}, *([{"type": kind}] if kind else [])]
            made = {"allOf": wanted} if self._draft is None else {"$schema": self._draft, "allOf": wanted}
            try:
                validator = self._validators[key] = self._validator_for(made)
            except Exception as error:  # ValidationError, ReferencingError, ValueError
                raise SchemaError(f"the fields cannot be found: {str(error)[:_MOST_SHOWN]}") from error
        return bool(validator.is_valid(_bare(value)))

    def _index(self, document: Any, name: str) -> None:
        """Record the reference of each part of a document."""
        waiting: list[tuple[Any, str]] = [(document, name)]
        while waiting:
            part, its_name = waiting.pop()
            inner: Iterable[tuple[Any, Any]] = ()
            if isinstance(part, dict):
                self._names[id(part)] = its_name
                inner = part.items()
                has_types = isinstance(part.get("type"), list) and not part.keys() <= _DESCRIPTIVE
                self.are_validated |= has_types or "oneOf" in part or "anyOf" in part
            elif isinstance(part, list):
                inner = enumerate(part)
            waiting += [(each, f"{its_name}/{_escaped(key)}") for key, each in inner if isinstance(each, dict | list)]


_OF_TYPE: Final[Mapping[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (not isinstance(value, bool) and isinstance(value, int)) or _is_whole(value),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}


def _is_of(kind: str, value: Any) -> bool:
    return kind in _OF_TYPE and _OF_TYPE[kind](value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _escaped(key: object) -> str:
    """Return a JSON pointer's token, escaped for a reference."""
    return quote(str(key).replace("~", "~0").replace("/", "~1"), safe="~")


def _bare(value: Any) -> Any:
    """Return a value with plain strings, because jsonschema-rs does not accept subclasses."""
    if isinstance(value, TextWithZero):
        return str.__str__(value)
    if isinstance(value, dict):
        return {_bare(name): _bare(each) for name, each in value.items()}
    return [_bare(each) for each in value] if isinstance(value, list) else value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
