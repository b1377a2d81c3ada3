"""Errors contain the schema's requirement, its place, and the type that was found, but no text from the client."""

import json
from typing import Any

import pytest

from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.rule import StepBudget

CAR = {"properties": {"kind": {"const": "car"}, "wheels": {"type": "integer"}}, "required": ["kind", "wheels"]}
BOAT = {"properties": {"kind": {"const": "boat"}, "sails": {"type": "integer"}}, "required": ["kind", "sails"]}
CLOSED = {"properties": {"a": {}, "b": {}}, "additionalProperties": False}
NESTED = {"$defs": {"closed": CLOSED}, "items": {"$ref": "#/$defs/closed"}}


def error_text(schema: Any, value: Any) -> str:
    text = json_schema_content(json.dumps(schema)).description(json.dumps(value).encode(), StepBudget())
    assert text is not None
    assert "secret" not in text
    return text.removeprefix("does not match its JSON Schema: ")


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"type": "integer"}, "secret", "the root: type (expected integer, found string)"),
        ({"type": ["null", "array"]}, True, "the root: type (expected array or null, found boolean)"),
        ({"items": {"type": "string"}}, [None], "/0: type (expected string, found null)"),
        (CLOSED, {"secret": 1}, "the root: additionalProperties (a property is not allowed; allowed: a, b)"),
        (NESTED, [{"secret": 1}], "/0: additionalProperties (a property is not allowed; allowed: a, b)"),
        (
            {"allOf": [{"properties": {"c": {}}}], "unevaluatedProperties": False},
            {"secret": 1},
            "the root: unevaluatedProperties (a property is not allowed; allowed: c)",
        ),
        (
            {"oneOf": [CAR, BOAT]},
            {"kind": "boat", "sails": "secret"},
            "the root: oneOf (none of 2 schemas matches; the nearest is number 2: "
            "/sails: type (expected integer, found string))",
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 5}]},
            3,
            "the root: anyOf (none of 2 schemas matches; the nearest is number 2: the root: minimum (must be at least "
            "5))",
        ),
        (
            {"properties": {"v": {"oneOf": [{"type": "integer"}, {"type": "number"}]}}},
            {"v": 3},
            "/v: oneOf (more than one of 2 schemas matches)",
        ),
        (
            {"not": {"required": ["password"]}},
            {"password": "secret"},
            'the root: not (must not follow {"required": ["password"]})',
        ),
        (
            {"propertyNames": {"pattern": "^[a-z]+$"}},
            {"secret1": 1},
            'the root: propertyNames (pattern (must match "^[a-z]+$"))',
        ),
        (
            {"properties": {"a": {}}, "patternProperties": {"^x-": {}}, "additionalProperties": False},
            {"secret": 1},
            'the root: additionalProperties (a property is not allowed; allowed: a, names that match "^x-")',
        ),
        (
            {"$ref": "#/$defs/base", "$defs": {"base": {"properties": {"a": {}}}}, "unevaluatedProperties": False},
            {"secret": 1},
            "the root: unevaluatedProperties (a property is not allowed; allowed: a)",
        ),
        (
            {"properties": {"at": {"pattern": "^[0-9]+$", "description": "seconds since 1970"}}},
            {"at": "secret"},
            '/at: pattern (must match "^[0-9]+$", "seconds since 1970")',
        ),
        ({"required": ["a"]}, {}, 'the root: required (the property "a" is missing)'),
        ({"minLength": 3}, "se", "the root: minLength (must have at least 3 characters)"),
        ({"maxItems": 1}, [1, 2], "the root: maxItems (must have at most 1 item)"),
        ({"minProperties": 2}, {}, "the root: minProperties (must have at least 2 properties)"),
        ({"exclusiveMaximum": 5}, 5, "the root: exclusiveMaximum (must be less than 5)"),
        ({"multipleOf": 5}, 7, "the root: multipleOf (must be a multiple of 5)"),
        ({"enum": ["a", 1]}, "secret", 'the root: enum (must be one of ["a", 1])'),
        ({"const": "a"}, "secret", 'the root: const (must be equal to "a")'),
        ({"format": "uuid"}, "secret", 'the root: format (must have the format "uuid")'),
    ],
)
def test_json_schema_error_states_the_requirement_of_the_keyword(schema: Any, value: Any, text: str) -> None:
    assert error_text(schema, value) == text


def test_json_schema_error_text_limits_branches_and_property_names() -> None:
    schema: Any = {"type": "integer"}
    for _ in range(30):
        schema = {"anyOf": [schema, {"type": "null"}]}
    many = {"properties": {f"name{i}": {} for i in range(500)}, "additionalProperties": False}

    assert error_text(schema, "secret").count("anyOf") <= 4
    assert len(error_text(many, {"secret": 1})) < 400
    assert error_text(many, {"secret": 1}).endswith("and 480 more)")
