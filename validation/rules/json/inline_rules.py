"""Visits the objects and properties of JSON for the rules inside their schema, as Confluent's client does.

The visit follows the same keywords as conditions on fields do (cel_fields.py).
"""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from sluicegate.validation.rules.cel.inline_rules import InlineVisit
from sluicegate.validation.rules.cel.runtime import ExpressionUnusable
from sluicegate.validation.rules.cel.steps import DENSEST_BYTE
from sluicegate.validation.rules.cel.variables import NotOfSchema, value_of
from sluicegate.validation.rules.json.cel_fields import NOT_FOLLOWED, Alternatives, Validator
from sluicegate.validation.rules.json.graph import Documents, Unclear
from sluicegate.validation.rules.rule import UNBOUNDED, SchemaError
from sluicegate.validation.rules.schemas.inline_rules import PlacedRules


class JsonRuledValues:
    """The values of one schema (`RuledValues`)."""

    pool = None

    def __init__(
        self,
        schema: Any,
        references: Mapping[str, Any],
        placed: PlacedRules,
        validator_for: Callable[[Any], Validator],
    ) -> None:
        """Create the values, with the arguments of JsonFields and the rules.

        Raises ExpressionUnusable if a reference is unclear.
        """
        self._placed = placed
        self._schema = schema
        try:
            self._documents = Documents(schema, references)
        except Unclear:
            raise ExpressionUnusable(NOT_FOLLOWED) from None
        self._loads = import_module("orjson").loads
        self._alternatives = Alternatives(schema, references, validator_for)

    def estimate_reading(self, data: bytes) -> tuple[int, int, int]:
        size = len(data)
        reading = UNBOUNDED if self._alternatives.are_validated else size * DENSEST_BYTE
        return size // 2 + 1, size + 1, reading

    def visit(self, data: bytes, visit: InlineVisit) -> None:
        """Visit all objects and their named, non-null properties."""
        value = value_of(data, self._loads)
        if isinstance(value, bytearray):  # not JSON
            raise NotOfSchema
        try:
            self._value(self._schema, "", value, "", visit)
        except Unclear:
            raise SchemaError(NOT_FOLLOWED) from None

    def _value(self, schema: Any, document: str, value: Any, path: str, visit: InlineVisit) -> None:
        if value is None or not isinstance(schema, dict):
            return
        visit.apply((), path, _nothing)
        types = schema.get("type")
        if isinstance(types, list) and types and self._alternatives.type_of(schema, types, value) is None:
            return
        combined = next((each for each in ("allOf", "oneOf", "anyOf") if schema.get(each) is not None), None)
        if combined is not None:
            self._combined(schema, combined, document, value, path, visit)
        items = schema.get("items")
        if items is not None and isinstance(value, list):
            for i, item in enumerate(value):
                self._value(items, document, item, f"{path}[{i}]", visit)
        elif combined is None and isinstance(schema.get("$ref"), str):
            target, its_document = self._documents.target(schema["$ref"], document)
            self._value(target, its_document, value, path, visit)
        elif isinstance(value, dict):
            self._object(schema, document, value, path, visit)

    def _combined(
        self, schema: dict[str, Any], keyword: str, document: str, value: Any, path: str, visit: InlineVisit
    ) -> None:
        """Visit a value with every schema of `allOf`, the first match of `oneOf`, or every match of `anyOf`."""
        branches = schema[keyword]
        for branch in branches if isinstance(branches, list) else ():
            target, its_document = branch, document
            if keyword != "allOf":
                if isinstance(branch, dict) and isinstance(branch.get("$ref"), str):
                    target, its_document = self._documents.target(branch["$ref"], document)
                if not self._alternatives.accepts(target, value):
                    continue
            self._value(target, its_document, value, path, visit)
            if keyword == "oneOf":
                return

    def _object(
        self, schema: dict[str, Any], document: str, value: dict[str, Any], path: str, visit: InlineVisit
    ) -> None:
        visit.apply(self._placed.at(id(schema)), path, lambda: value)
        properties = schema.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            its_value = value.get(name)
            if its_value is not None and isinstance(inner, dict):
                its_path = f"{path}.{name}" if path else name
                visit.apply(self._placed.at(id(inner)), its_path, partial(_itself, its_value))
                self._value(inner, document, its_value, its_path, visit)


def _itself(value: Any) -> Any:
    return value


def _nothing() -> None:
    """Return None, because no rule applies."""
