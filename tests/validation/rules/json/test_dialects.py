"""JSON Schemas in forms that differ from their draft are interpreted as in Java's libraries (everit, networknt)."""

import json
from functools import reduce
from typing import Any

import pytest
from jsonschema import Draft3Validator

from sluicegate.validation.rules.json.dialects import rust_pattern
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED, StepBudget
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from tests.oracle.java_schemas import json_schemas_in_java
from tests.validation.rules.steps import steps_of

DRAFT_4, DRAFT_7 = "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"
STRINGS = ["", "a", "ab", "abc", "abc\n", "abcd", "foobar", "bar", "Passw0rd", "passw0rd", "aa", "a-b", "x.y", "a b"]
PATTERNS = [
    "^(?!foo)",
    "^(?=.*[A-Z])(?=.*\\d).{8,}$",
    "(?<!foo)bar$",
    "(?<=a)b",
    "(.)\\1",
    "^abc\\Z",
    "^(abc|ab\\Z)",
    "^(?:ab(?:c\\Z))",
    "a\\Zb|abcd",
    "\\Aabc\\z",
    "^[\\w-.]+$",
    "^[\\w.-]+$",
    "^a++$",
    "(?i)PASSW0RD",
]
# Patterns that are invalid in ECMA-262, which applies to drafts 4 to 7, or in Rust's dialect.
OF_OTHER_DIALECTS = [
    "^(?i)PASSW0RD",
    "\\A[a-c]+\\z",
    "^abc\\Z",
    "^]|abcd",
    "^(?<one>a)(?:b)?(?<two>b)?\\k<one>",
    "^(?<n>.)\\k<n>-?",
    "^\\ud83d\\ude00|[\\ud83d\\ude00-\\ud83d\\ude4f]b",
]
ROWS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "any": ({"type": "any"}, [1, "a", None]),
    "any of a property": ({"properties": {"a": {"type": "any", "minimum": 2}}}, [{"a": "x"}, {"a": 1}, {"a": 3}]),
    "any among others": ({"type": ["any", "string"]}, [1, "a"]),
    "required: true of a property": (
        {"type": "object", "properties": {"a": {"type": "string", "required": True}}},
        [{"a": "x"}, {"a": 1}, {}],
    ),
    "required: true in draft 7": (
        {"$schema": DRAFT_7, "properties": {"a": {"type": "string", "required": True}}},
        [{"a": "x"}, {}],
    ),
    "required: false": ({"required": False, "type": "object"}, [{}, 1]),
    "names twice": ({"required": ["a", "a"], "type": ["object", "object"]}, [{"a": 1}, {}, 1]),
    "no name in draft 4": ({"$schema": DRAFT_4, "required": []}, [{}, 1]),
    "limits of draft 4": (
        {"$schema": DRAFT_4, "type": "number", "minimum": 1, "exclusiveMinimum": True},
        [0, 1, 1.5, 2],
    ),
    "items in a list": ({"type": "array", "items": [{"type": "string"}]}, [["a"], [1], ["a", 1], []]),
    "items in a list with a rest": ({"items": [{"type": "string"}], "additionalItems": False}, [["a"], ["a", 1]]),
    "own name of a draft": ({"$schema": "https://example.com/mine", "type": "string"}, ["a", 1]),
    "draft without its address": ({"$schema": "draft-07", "type": "string"}, ["a", 1]),
    "title that is no text": ({"title": 7, "description": [], "type": "string"}, ["a", 1]),
    "format that is no text": ({"type": "string", "format": 7}, ["a", 1]),
    **{
        # Java's $ also matches before a last line terminator; $ in JSON Schema (ECMA-262) does not.
        f"pattern {pattern}": (
            {"type": "string", "pattern": pattern},
            [one for one in STRINGS if "\n" not in one or "$" not in pattern],
        )
        for pattern in PATTERNS
    },
    **{
        f"pattern {pattern} in {draft[-10:-1]}": (
            {"$schema": draft, "type": "object", "properties": {"a": {"minLength": 1, "pattern": pattern}}},
            [{"a": one} for one in [*STRINGS, "😀", "😁b", "]", "aba", "abba"]],
        )
        for pattern in OF_OTHER_DIALECTS
        for draft in (DRAFT_4, DRAFT_7)
    },
    "negated look-ahead": ({"type": "string", "not": {"pattern": "^(?!foo)"}}, STRINGS),
    "look-ahead of a name": (
        {"patternProperties": {"^(?!x-)": {"type": "integer"}}, "additionalProperties": False},
        [{"a": 1}, {"a": "1"}, {"x-a": 1}, {}],
    ),
}


@pytest.fixture(scope="module")
def java_results_of_rows() -> dict[str, list[list[bool]]]:
    return dict(zip(ROWS, json_schemas_in_java(ROWS.values()), strict=True))


@pytest.mark.parametrize("row", ROWS)
def test_json_schema_verdicts_equal_those_of_java_libraries(
    row: str, java_results_of_rows: dict[str, list[list[bool]]]
) -> None:
    schema, values = ROWS[row]
    content = json_schema_content(json.dumps(schema))
    ours = [content.fault(json.dumps(value).encode(), StepBudget()) is None for value in values]

    assert java_results_of_rows[row] != []
    assert [ours] * len(java_results_of_rows[row]) == java_results_of_rows[row]


# No Java library accepts these schemas; draft 4 defines the keywords.
@pytest.mark.parametrize("schema", [{}, {"$schema": DRAFT_7}, {"type": "integer"}])
def test_boolean_exclusive_limits_of_draft_4_apply_in_any_draft(schema: dict[str, Any]) -> None:
    content = json_schema_content(json.dumps({**schema, "minimum": 1, "exclusiveMinimum": True, "maximum": 3}))

    assert [content.fault(value, StepBudget()) is None for value in (b"0", b"1", b"2", b"3", b"4")] == [
        False,
        False,
        True,
        True,
        False,
    ]
    content = json_schema_content(json.dumps({**schema, "maximum": 3, "exclusiveMaximum": False}))
    assert [content.fault(value, StepBudget()) is None for value in (b"3", b"4")] == [True, False]


def test_only_patterns_that_may_backtrack_have_unbounded_steps() -> None:
    looking = json_schema_content('{"pattern": "^(?=a)"}')
    plain = json_schema_content('{"pattern": "^abc\\\\Z"}')

    assert steps_of(looking.fault, b'"a"') == UNBOUNDED
    assert steps_of(plain.fault, b'"a"') <= INLINE_STEPS


def test_schema_without_declared_draft_uses_the_latest_draft() -> None:
    content = json_schema_content('{"prefixItems": [{"type": "string"}], "items": false, "required": ["a"]}')

    assert content.fault(b'["a"]', StepBudget()) is None
    assert content.fault(b'["a", 1]', StepBudget()) is not None


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "#/definitions/x"}, "/definitions/x"),
        ({"properties": {"a": {"$ref": "#/definitions/x"}}, "definitions": {}}, "/definitions/x"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "other.json"),
        ({"pattern": "["}, "regex"),
        ({"$schema": DRAFT_7, "pattern": "^[a-z&&[^b]]+$"}, "regex"),
        ({"type": "strang"}, "strang"),
        (reduce(lambda inner, _: {"allOf": [inner]}, range(140), {}), "nested too deep"),
        (reduce(lambda inner, _: {"allOf": [inner]}, range(300), {}), "nested too deep"),
    ],
)
def test_rejects_json_schema_that_no_library_supports_with_the_reason(schema: Any, words: str) -> None:
    with pytest.raises(SchemaUnusable, match=words):
        json_schema_content(json.dumps(schema))


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^[\\b]$", "\b", "b"),
        ("^\\0$", "\0", "0"),
        ("^(a)(?<n>b)\\(\\k<n>[(]$", "ab(b(", "ab(a("),
        ("^\\uD83D\\uDE00{2}$", "😀😀", "😀"),
    ],
)
def test_ecma_262_patterns_match_as_in_ecma_262(pattern: str, good: str, bad: str) -> None:
    content = json_schema_content(json.dumps({"$schema": DRAFT_7, "pattern": pattern}))

    assert content.fault(json.dumps(good).encode(), StepBudget()) is None
    assert content.fault(json.dumps(bad).encode(), StepBudget()) is not None


@pytest.mark.parametrize("pattern", ["\\\\Z", "[\\Z]", "[\\w-]", "[a-z]", "\\w-.", "\\[\\w-.", "", "\\"])
def test_patterns_without_ecma_262_syntax_are_not_translated(pattern: str) -> None:
    assert rust_pattern(pattern) == pattern


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"items": {"type": "integer"}},
        {"items": [{"type": 7}]},
        {"minimum": "x"},
        {"type": [{"minimum": "a"}, "string"]},
        {"type": ["string", {"enum": [1]}]},
        {"properties": {"a": {"required": True}}},
        {"properties": {"a": {"required": ["x"]}}},
        {"exclusiveMinimum": True},
        {"exclusiveMinimum": True, "minimum": 1},
        {"dependencies": {"a": "b", "c": ["d"], "e": {"disallow": "string"}}},
        {"dependencies": {"a": [1]}},
        {"enum": []},
        {"divisibleBy": 0},
        {"minItems": -1},
        {"extends": [{"maxLength": 1.5}]},
        {"$schema": "http://json-schema.org/draft-03/schema#", "unknown": 1},
        [],
        7,
    ],
    ids=json.dumps,
)
def test_a_schema_may_refer_to_the_metaschema_of_draft_3(value: object) -> None:
    metaschema = "http://json-schema.org/draft-03/schema#"
    for schema in ({"$ref": metaschema}, {"properties": {"of": {"$ref": metaschema}}}):
        schema["$schema"] = metaschema
        content = json_schema_content(json.dumps(schema))
        for each in (value, {"of": value}):
            is_valid = Draft3Validator(schema).is_valid(each)
            assert (content.fault(json.dumps(each).encode(), StepBudget()) is None) is is_valid


@pytest.mark.parametrize("value", ["a title", 5, {"type": "string"}], ids=json.dumps)
def test_a_schema_may_refer_to_a_part_of_the_metaschema_of_draft_3(value: object) -> None:
    metaschema = "http://json-schema.org/draft-03/schema#"
    schema = {"$schema": metaschema, "properties": {"of": {"$ref": f"{metaschema}/properties/title"}}}
    content = json_schema_content(json.dumps(schema))

    is_good = content.fault(json.dumps({"of": value}).encode(), StepBudget()) is None

    assert is_good is Draft3Validator(schema).is_valid({"of": value})
