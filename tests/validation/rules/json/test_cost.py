"""The bound on a JSON Schema's steps is never below the cost of a verdict, and is low for ordinary records."""

import json
from time import thread_time
from typing import Any

import pytest

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.json.cost import JsonSchemaCost
from sluicegate.validation.rules.json.schema import JsonSchemaContent, json_schema_content
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED, StepBudget
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from tests.validation.rules.json.random_json import RandomJson
from tests.validation.rules.steps import steps_of

pytestmark = pytest.mark.skipif(not is_compiled(), reason="steps are those of compiled code")

_STEP_SECONDS = 100e-9
# A margin for the first use of a pattern and for a busy machine.
_SLACK_SECONDS = 1e-3
# The documented "few milliseconds", on the same machine.
_MOST_EXPLAINING_SECONDS = 0.02

SELF = {"$ref": "#"}
WORDS_249 = {"items": {"enum": [f"word-{i}" for i in range(249)]}}
WORDS_5000 = {"items": {"enum": [f"word-{i}" for i in range(5000)]}}
MIXED_5000 = {"items": {"enum": [*(f"word-{i}" for i in range(5000)), 7]}}
VARIANTS_50 = {
    "oneOf": [
        {"properties": {f"p{i}": {"type": "integer"} for i in range(20)}, "required": [f"kind{n}"]} for n in range(50)
    ]
}
WRONG_WORDS = json.dumps(["w"] * 5000).encode()
ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "sku": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4,8}$"},
        "amount": {"type": "number", "multipleOf": 0.01},
        "state": {"enum": ["new", "paid", "sent"]},
        "lines": {"type": "array", "uniqueItems": True, "items": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}},
    },
    "required": ["id"],
    "additionalProperties": False,
}
AN_ORDER = {
    "id": "12345678-1234-5678-1234-567812345678",
    "sku": "ABC-1234",
    "amount": 129.95,
    "state": "paid",
    "lines": [{"a": i, "text": "shipped with the next truck"} for i in range(15)],
}


def doubling_chain(keyword: str, depth: int) -> dict[str, Any]:
    """Return a chain of schemas; each applies the next one twice."""
    defs = {f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": {"type": "string"}}}


def steps_of_schema(schema: Any, text: bytes) -> int:
    return JsonSchemaCost(schema, {}).steps(text)


def seconds_of(content: JsonSchemaContent, text: bytes) -> float:
    """Return the minimum duration of several runs (s), because other load only increases it."""
    return min(_once(content, text) for _ in range(3))


def _once(content: JsonSchemaContent, text: bytes) -> float:
    began = thread_time()
    content.fault(text, StepBudget())
    return thread_time() - began


@pytest.mark.parametrize("seed", range(12))
def test_json_validation_and_explanation_stay_within_their_estimated_steps(seed: int) -> None:
    drawn = RandomJson(seed)
    for _ in range(8):
        schema = drawn.schema()
        try:
            content = json_schema_content(json.dumps(schema))
        except SchemaUnusable:
            continue
        for _ in range(4):
            text = drawn.text()
            bound = steps_of(content.fault, text)
            if bound > 10 * INLINE_STEPS:
                continue  # the value may take long
            assert seconds_of(content, text) < bound * _STEP_SECONDS + _SLACK_SECONDS, (schema, text[:1000])
            began = thread_time()
            content.description(text, StepBudget())
            assert thread_time() - began < _MOST_EXPLAINING_SECONDS, (schema, text[:1000])


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (doubling_chain("allOf", 20), b'"x"'),
        (doubling_chain("allOf", 24), b"7"),
        (doubling_chain("anyOf", 24), b"7"),
        (doubling_chain("oneOf", 1500), b"7"),
        ({"uniqueItems": True}, json.dumps([i + 0.5 for i in range(300_000)]).encode()),
        ({"uniqueItems": True}, json.dumps([[[i * 1e-300] * 15] * 15 for i in range(100)]).encode()),
        (MIXED_5000, WRONG_WORDS),
        ({"items": {"multipleOf": 0.01}}, b"[" + b"1e-300," * 3000 + b"1]"),
        ({"pattern": r"(\w{1,100}){1,20}x"}, b'"' + b"1" * 2000 + b'"'),
        ({"patternProperties": {f"[ab]*a[ab]{{{n}}}c": {} for n in range(1500)}}, b'{"' + b"ab" * 50 + b'": 1}'),
        ({"anyOf": [{"items": SELF, "minItems": 5}, {"items": SELF, "maxItems": 0}]}, b"[" * 40 + b"]" * 40),
        ({"oneOf": [{"properties": {"a": SELF}}, {"additionalProperties": SELF}]}, b'{"a":' * 40 + b"1" + b"}" * 40),
        ({"type": ["array", "object"], "contains": {"const": 7}}, b"[" + b"[]," * 2_000_000 + b"1]"),
        ({"not": {"const": 7}}, b"[" + b'{"a":1},' * 200_000 + b"1]"),
    ],
)
def test_costly_json_schema_is_not_applied_inline(schema: Any, text: bytes) -> None:
    assert steps_of_schema(schema, text) > INLINE_STEPS


@pytest.mark.parametrize(
    ("schema", "references"),
    [
        ({"anyOf": [SELF, {"type": "null"}]}, {}),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {}),
        ({"$ref": "elsewhere.json"}, {}),
        ({"$ref": "b.json"}, {"b.json": {"allOf": [{"$ref": "c.json"}]}, "c.json": {"$ref": "b.json"}}),
        ({"$defs": {"x": {"$id": "inner"}}, "$ref": "inner"}, {}),
        ({"$ref": "#one", "$defs": {"x": {"$anchor": "one"}, "y": {"$anchor": "one"}}}, {}),
        ({"minimum": 10**500}, {}),
    ],
)
def test_json_schemas_of_unknown_cost_are_unbounded(schema: Any, references: dict[str, Any]) -> None:
    assert JsonSchemaCost(schema, references).steps(b"1") == UNBOUNDED


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (ORDER, AN_ORDER),
        (WORDS_249, ["word-7"] * 5000),
        (WORDS_249, ["wrong"] * 2500),
        (WORDS_5000, ["wrong"] * 2500),
        (VARIANTS_50, {f"p{i}": "x" for i in range(20)}),
        ({"properties": {"left": SELF, "right": SELF}}, {"left": {"right": {"left": {}}}}),
        ({"type": "object", "properties": {"next": {"anyOf": [{"type": "null"}, SELF]}}}, {"next": {"next": None}}),
        (doubling_chain("allOf", 8), "x"),
    ],
)
def test_cheap_json_schema_is_applied_inline(schema: Any, value: Any) -> None:
    assert steps_of_schema(schema, json.dumps(value).encode()) <= INLINE_STEPS


def test_the_cost_of_a_large_schema_is_calculated_in_time() -> None:
    """The schemas have definitions that refer to each other, or a long chain of definitions."""
    definitions = {
        f"d{i}": {"properties": {f"p{j}": {"oneOf": [{"$ref": f"#/$defs/d{(7 * i + j) % 200}"}, {}]} for j in range(5)}}
        for i in range(200)
    }
    links = {f"d{i}": {"properties": {"a": {"$ref": f"#/$defs/d{i + 1}"}}} for i in range(1500)}
    for defs in (definitions, {**links, "d1500": {"uniqueItems": True}}):
        began = thread_time()
        cost = JsonSchemaCost({"$ref": "#/$defs/d0", "$defs": defs}, {})
        assert thread_time() - began < 2
        assert cost.steps(b'{"p1": {"p2": 1}}') <= INLINE_STEPS


def test_values_below_the_counted_depth_cost_as_the_most_expensive_level() -> None:
    pairs = {"properties": {"a": {"items": SELF, "uniqueItems": True}}}
    every_second = {"properties": {"a": {"properties": {"a": SELF}, "not": {"enum": [*range(1000), None]}}}}
    deep = b'{"a":' * 600 + b"1" + b"}" * 600

    assert steps_of_schema(pairs, b'{"a":[' * 400 + b"]}" * 400) > INLINE_STEPS
    assert steps_of_schema(every_second, deep) > 300 * 100


@pytest.mark.parametrize("schema", [WORDS_249, WORDS_5000, MIXED_5000])
def test_values_outside_of_a_long_enum_are_rejected_and_explained_in_time(schema: Any) -> None:
    content = json_schema_content(json.dumps(schema))
    began = thread_time()
    for _ in range(10):
        assert content.fault(WRONG_WORDS, StepBudget()) == "does not match its JSON Schema"
    explained = content.description(WRONG_WORDS, StepBudget())

    assert thread_time() - began < 0.5
    assert explained is None or ("/0: enum" in explained and len(explained) < 400)


def test_one_of_fifty_alternatives_is_rejected_and_explained_briefly_in_time() -> None:
    content = json_schema_content(json.dumps(VARIANTS_50))
    value = json.dumps({f"p{i}": "a wrong text" for i in range(20)}).encode()
    began = thread_time()

    assert content.fault(value, StepBudget()) == "does not match its JSON Schema"
    explained = content.description(value, StepBudget())

    assert thread_time() - began < _MOST_EXPLAINING_SECONDS
    assert explained in (None, "does not match its JSON Schema: the root: oneOf")


def test_long_integer_list_accepted_by_the_native_plan_is_inline() -> None:
    content = json_schema_content('{"type": "array", "items": {"type": "integer"}}')
    numbers = b"[" + b"1," * 1_500_000 + b"1]"

    assert steps_of(content.fault, numbers) <= INLINE_STEPS
    assert steps_of(content.fault, numbers[:-2] + b'"x"]') > INLINE_STEPS


def test_colliding_property_names_do_not_slow_down_validation() -> None:
    def hash_slot(name: str) -> int:
        value = 14695981039346656037
        for byte in name.encode():
            value = (value ^ byte) * 1099511628211 % 2**64
        return (value ^ value >> 32) % 4096

    names: list[str] = []
    number = 0
    while len(names) < 1100:
        if hash_slot(f"n{number}") < 64:
            names.append(f"n{number}")
        number += 1
    colliding = json_schema_content(json.dumps({"properties": {name: {"type": "integer"} for name in names}}))
    plain = json_schema_content(json.dumps({"properties": {f"n{i}": {"type": "integer"} for i in range(1100)}}))

    assert colliding.ordinary(0) is None
    assert plain.ordinary(0) is not None
    assert colliding.fault(b'{"n1": 1}', StepBudget()) is None


def test_long_enum_is_checked_natively_in_constant_time() -> None:
    content = json_schema_content(json.dumps(WORDS_5000))
    few = json_schema_content(json.dumps({"items": {"enum": ["word-4999", "word-1"]}}))
    value = json.dumps(["word-4999"] * 50_000).encode()

    assert content.fault(value, StepBudget()) is None
    assert seconds_of(content, value) < 4 * seconds_of(few, value) + _SLACK_SECONDS
