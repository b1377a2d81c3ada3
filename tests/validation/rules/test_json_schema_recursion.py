"""A schema whose alternatives lead back to itself costs no more than some ten thousands of looks at a value."""

import json
from time import monotonic
from typing import Any

import pytest

from sluicegate.validation.rules.json_schema import MAX_DEPTH, json_schema_content
from sluicegate.validation.rules.json_schema_recursion import deepest_for

SELF = {"$ref": "#"}
BOTH_LOOK_BELOW = {"anyOf": [{"items": SELF, "minItems": 5}, {"items": SELF, "maxItems": 0}]}
BY_DEFINITION = {
    "$ref": "#/$defs/a",
    "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"items": {"$ref": "#/$defs/a"}, "maxItems": 0}]}}
    | {"b": {"items": {"$ref": "#/$defs/a"}, "minItems": 5}},
}
THREE_WAYS = {
    "oneOf": [{"properties": {"a": SELF}}, {"additionalProperties": SELF}, {"patternProperties": {".": SELF}}]
}
A_CONDITION = {"if": {"properties": {"a": SELF}}, "then": {"properties": {"a": SELF}}}
A_LIST = {"type": "object", "properties": {"next": {"anyOf": [{"type": "null"}, SELF]}}}
A_TREE = {"properties": {"left": SELF, "right": SELF}}
A_FOREST = {"type": ["array", "string"], "items": SELF}
ALTERNATIVES_ALONE = {"anyOf": [{"items": {"type": "string"}}, {"items": {"type": "integer"}}]}


@pytest.mark.parametrize(
    ("schema", "ways"), [(BOTH_LOOK_BELOW, 2), (BY_DEFINITION, 2), (THREE_WAYS, 3), (A_CONDITION, 2)]
)
def test_alternatives_that_lead_back_bound_how_deep_a_value_lies(schema: Any, ways: int) -> None:
    deepest = deepest_for(schema, {}, MAX_DEPTH)

    assert ways**deepest <= 100_000 < ways ** (deepest + 1)


@pytest.mark.parametrize("schema", [A_LIST, A_TREE, A_FOREST, ALTERNATIVES_ALONE, {}, True])
def test_others_are_not_bounded(schema: Any) -> None:
    assert deepest_for(schema, {}, MAX_DEPTH) == MAX_DEPTH


def test_what_a_registry_s_references_lead_back_to_is_seen() -> None:
    other = {"items": {"$ref": "main.json"}}
    main = {"anyOf": [{"$ref": "other.json"}, {"items": SELF}]}

    assert deepest_for(main, {"other.json": other, "main.json": main}, MAX_DEPTH) < MAX_DEPTH


@pytest.mark.parametrize("schema", [BOTH_LOOK_BELOW, BY_DEFINITION])
def test_a_small_value_takes_a_moment(schema: Any) -> None:
    content = json_schema_content(json.dumps(schema))
    began = monotonic()

    words = str(content.fault(b"[" * 40 + b"]" * 40))

    assert "lead back to itself" in words
    assert content.fault(b"[]") is None
    assert "does not follow" in str(content.fault(b"[" * 10 + b"]" * 10))
    assert monotonic() - began < 5


def test_a_schema_of_many_ways_is_read_in_a_moment() -> None:
    doubled: Any = {"items": {"type": "string"}}
    for _ in range(40):
        doubled = {"allOf": [doubled, doubled]}
    began = monotonic()

    deepest_for(doubled, {}, MAX_DEPTH)

    assert monotonic() - began < 5
