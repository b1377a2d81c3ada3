"""jsonschema-rs accepts the values that native code accepts for a JSON Schema, and native code accepts ordinary
records.
"""

import json
from typing import Any

import jsonschema_rs
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.validation.rules.json.plan import HAS_NATIVE, check_of_plan, json_schema_plan

pytestmark = pytest.mark.skipif(not HAS_NATIVE, reason="nothing native was compiled")

ORDER = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "customer": {"type": "string", "minLength": 1, "maxLength": 20},
        "amount": {"type": "number", "minimum": 0, "exclusiveMaximum": 1000.5},
        "state": {"enum": ["new", "paid", "naïve"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "address": {"$ref": "#/$defs/address"},
        "parent": {"$ref": "#/$defs/order"},
        "note": {"type": ["string", "null"]},
    },
    "required": ["id", "amount"],
    "additionalProperties": False,
    "$defs": {
        "address": {"type": "object", "properties": {"zip": {"type": "string"}}, "required": ["zip", "city"]},
        "order": {"type": "object", "properties": {"parent": {"$ref": "#/$defs/order"}}, "required": []},
    },
}


def is_valid_natively(schema: Any, text: bytes) -> bool:
    plan = json_schema_plan(schema)
    assert plan is not None
    return check_of_plan(plan)(text)


@pytest.mark.parametrize(
    "text",
    [
        b'{"id":1,"amount":0}',
        b' { "amount" : 129.95 , "id" : 4711 } ',
        '{"id":1,"amount":1,"customer":"Zoë \\n","state":"naïve","tags":[],"note":null}'.encode(),
        b'{"id":1,"amount":1,"address":{"city":{"any":[1,2.5,-3]},"zip":"1","more":true}}',
        b'{"id":1,"amount":1,"parent":{"parent":{"parent":{}}},"tags":["a","b","c"]}',
    ],
)
def test_ordinary_json_records_are_accepted_by_the_native_plan(text: bytes) -> None:
    assert jsonschema_rs.is_valid(ORDER, orjson.loads(text))
    assert is_valid_natively(ORDER, text) == (b'"customer"' not in text)  # an escape, and a length to be counted


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b'{"id":0,"amount":1}',
        b'{"id":1.5,"amount":1}',
        b'{"id":1,"amount":-0.5}',
        b'{"id":1,"amount":1000.75}',
        b'{"id":1,"amount":"1"}',
        b'{"id":1,"amount":1,"secret":1}',
        b'{"id":1,"amount":1,"state":"old"}',
        b'{"id":1,"amount":1,"state":1}',
        b'{"id":1,"amount":1,"tags":["a","b","c","d"]}',
        b'{"id":1,"amount":1,"tags":[1]}',
        b'{"id":1,"amount":1,"customer":""}',
        b'{"id":1,"amount":1,"customer":"123456789012345678901"}',
        b'{"id":1,"amount":1,"address":{"zip":"1"}}',
        b'{"id":1,"amount":1,"parent":{"parent":{"parent":[]}}}',
        b'{"id":1,"amount":1} {}',
        b'{"id":1,"amount":1,}',
        b'{"id":1,"amount":1',
        b'{"id":1,"amount":1,"note":"\\ud800"}',
    ],
)
def test_invalid_json_value_falls_back_to_the_schema_library(text: bytes) -> None:
    assert not is_valid_natively(ORDER, text)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "format": "uuid"},
        {"pattern": "^a"},
        {"anyOf": [{}]},
        {"items": [{}]},
        {"prefixItems": [{}]},
        {"uniqueItems": True},
        {"minProperties": 1},
        {"patternProperties": {}},
        {"$ref": "#/properties/a"},
        {"$ref": "other.json"},
        {"properties": {"a": {"$id": "x"}}},
        {"exclusiveMinimum": True, "minimum": 1},
        {"something": "of one's own"},
    ],
)
def test_json_schema_with_unsupported_keywords_has_no_native_plan(schema: Any) -> None:
    assert json_schema_plan(schema) is None


@pytest.mark.parametrize("text", [b"1", b'{"a":1}', b"[[]]", b'"x"', b"null", b"true", b"1.5"])
def test_empty_json_schema_accepts_every_value(text: bytes) -> None:
    assert is_valid_natively(True, text)
    assert is_valid_natively({}, text)
    assert not is_valid_natively(False, text)


def test_native_plan_finds_three_hundred_properties_in_any_order() -> None:
    names = [f"name{n}" for n in range(300)]
    schema = {"properties": {name: {"const": name} for name in names}, "additionalProperties": False}

    assert is_valid_natively(schema, json.dumps({name: name for name in reversed(names)}).encode())
    assert not is_valid_natively(schema, json.dumps(dict.fromkeys(names, "other")).encode())
    assert not is_valid_natively(schema, b'{"another": 1}')


NAMES = st.sampled_from(["a", "b", "c", "é", "dd"])
WORDS = st.sampled_from(["", "x", "yé", "naïve", "a\\b", 'q"', "\n", "z" * 20])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, -0.5, 2.5, 1e3, 1.0, -1.0, 10**17, 10**19, -(10**20)])
BOUNDS = st.integers(-2, 2) | st.sampled_from([0.5, -1.5, 2.0])
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
LEAVES = (
    st.booleans()
    | st.just({})
    | st.fixed_dictionaries({"type": TYPES | st.lists(TYPES, min_size=1, unique=True)})
    | st.fixed_dictionaries(
        {},
        optional={
            "minimum": BOUNDS,
            "maximum": BOUNDS,
            "exclusiveMinimum": BOUNDS,
            "exclusiveMaximum": BOUNDS,
            "minLength": st.integers(0, 3),
            "maxLength": st.integers(0, 3),
        },
    )
    | st.fixed_dictionaries({"enum": st.lists(WORDS | NUMBERS | st.none(), min_size=1, unique_by=repr)})
    | st.fixed_dictionaries({"const": WORDS})
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES,
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, unique=True, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
        },
    ),
    max_leaves=6,
)
TEXTS = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.long
@settings(max_examples=1500)
@given(SCHEMAS, TEXTS, st.booleans(), st.data())
def test_values_accepted_by_the_native_plan_are_valid_by_the_library(
    schema: Any, value: Any, ascii_only: bool, data: st.DataObject
) -> None:
    text = bytearray(json.dumps(value, ensure_ascii=ascii_only).encode())
    for _ in range(data.draw(st.integers(0, 2))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.sampled_from(b'{}[]",:01.eE-tn \\\xc3'))

    if is_valid_natively(schema, bytes(text)):
        assert jsonschema_rs.is_valid(schema, orjson.loads(bytes(text)))


@given(SCHEMAS, TEXTS)
def test_duplicate_keys_are_accepted_natively_only_if_both_values_are_valid(schema: Any, value: Any) -> None:
    text = f'{{"a":{json.dumps(value)},"a":1}}'.encode()

    if is_valid_natively(schema, text):
        assert jsonschema_rs.is_valid(schema, orjson.loads(text))
        assert jsonschema_rs.is_valid(schema, {"a": value})
