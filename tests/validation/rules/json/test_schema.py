"""Values are validated by a JSON Schema, and violations are described."""

import json
from functools import reduce
from typing import Any

import pytest

from sluicegate.validation.rules.json.schema import MAX_DEPTH, json_schema_content
from sluicegate.validation.rules.json.syntax import JsonSyntax
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED, Side, StepBudget
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "amount": {"type": "number", "minimum": 0},
        "lines": {"type": "array", "items": {"type": "object", "required": ["sku"]}},
    },
    "required": ["amount"],
    "additionalProperties": False,
}
DRAFTS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]


def fault(schema: Any, value: bytes) -> str | None:
    return json_schema_content(json.dumps(schema)).fault(value, StepBudget())


def test_accepts_value_that_matches_the_json_schema() -> None:
    assert fault(ORDER, b'{"amount": 1, "id": "12345678-1234-5678-1234-567812345678", "lines": [{"sku": 1}]}') is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b'{"amount": -7}', "does not match its JSON Schema: /amount: minimum (must be at least 0)"),
        (b'{"amount": "secret"}', "does not match its JSON Schema: /amount: type (expected number, found string)"),
        (b"{}", 'does not match its JSON Schema: the root: required (the property "amount" is missing)'),
        (
            b'{"amount": 1, "lines": [{"sku": 1}, {}]}',
            'does not match its JSON Schema: /lines/1: required (the property "sku" is missing)',
        ),
        (
            b'{"amount": 1, "secret": 1}',
            "does not match its JSON Schema: the root: additionalProperties (a property is not allowed; "
            "allowed: id, amount, lines)",
        ),
        (
            b'{"amount": 1, "id": "secret"}',
            'does not match its JSON Schema: /id: format (must have the format "uuid")',
        ),
        (
            b"{} {}",
            "is not JSON: bytes follow the JSON; write exactly one value to a record (at byte 3)",
        ),
        (b'{"amount": NaN}', "is not JSON: a value was expected (at byte 11)"),
    ],
)
def test_json_schema_error_names_path_and_keyword(value: bytes, said: str) -> None:
    content = json_schema_content(json.dumps(ORDER))

    assert (content.description(value, StepBudget()) or content.fault(value, StepBudget())) == said
    assert str(content.fault(value, StepBudget())).startswith(said[:20])


def test_valid_json_value_has_no_explanation() -> None:
    assert json_schema_content(json.dumps(ORDER)).description(b'{"amount": 1}', StepBudget()) is None


def test_json_schema_explanations_hide_property_names_sent_by_clients() -> None:
    content = json_schema_content('{"additionalProperties": {"type": "integer"}}')

    assert (
        content.description(b'{"secret": "x"}', StepBudget())
        == "does not match its JSON Schema: /…: type (expected integer, found string)"
    )


def test_explains_only_the_first_of_many_json_schema_errors() -> None:
    content = json_schema_content('{"items": {"type": "integer"}}')

    assert content.description(json.dumps([1, *["x"] * 1000]).encode(), StepBudget()) == (
        "does not match its JSON Schema: /1: type (expected integer, found string)"
    )


@pytest.mark.parametrize("draft", DRAFTS)
def test_supports_all_json_schema_drafts_and_checks_formats(draft: str) -> None:
    schema = {"$schema": draft, "type": "string", "format": "ipv4"}

    assert fault(schema, b'"10.0.0.1"') is None
    assert fault(schema, b'"10.0.0.256"') is not None


def test_json_schema_validation_limits_nesting_depth() -> None:
    deep = b"[" * 400 + b"]" * 400

    assert fault({"uniqueItems": True}, b"[" + deep + b"," + deep + b"]") == (
        f"is JSON nested more than {MAX_DEPTH} levels deep"
    )
    assert fault({"items": {"type": "array"}}, deep) is None
    assert "deeper" in str(fault({}, b"[" * 40_000))
    assert "deeper" in str(fault({"not": {}}, b"[" * 2_000 + b"]" * 2_000))


UNUSUAL = [
    b"1e400",
    b"-1e400",
    b"1e-400",
    b"1e99999999999999999999",
    b"7" * 5_000,
    b'{"amount": [1e309]}',
    b"-9223372036854775809",
    b"12345678901234567890.5",
    b'"\\ud800"',
    b'"\\uDC00 \\ud83d\\ude00"',
    b'"\\ud800\\u0041"',
    b'{"\\udfff": "\\\\ud800"}',
]


@pytest.mark.parametrize("text", UNUSUAL)
def test_huge_numbers_and_lone_surrogates_are_accepted_as_json(text: bytes) -> None:
    syntax = JsonSyntax(Side.VALUE)

    for schema in ({}, True, {"not": {"const": 1}}, {"type": ["string", "number", "object"], "format": "x"}):
        content = json_schema_content(json.dumps(schema))
        assert content.fault(text, StepBudget()) is None
        assert content.description(text, StepBudget()) is None
        for cut in (text[:-1], text + b"]", b"[" + text):
            assert (content.fault(cut, StepBudget()) is None) == (syntax.fault(record(cut)) is None), cut


@pytest.mark.parametrize(
    ("schema", "follows", "not_following"),
    [
        ('{"maximum": 18446744073709551615}', b"18446744073709551615", b"18446744073709551616"),
        ('{"minimum": -9223372036854775808}', b"-9223372036854775808", b"-9223372036854775809"),
        ('{"multipleOf": 3}', b"36893488147419103233", b"36893488147419103232"),
        ('{"multipleOf": 3}', b"3e5000", b"1e5000"),
        ('{"multipleOf": 0.01}', b"12345678901234567890.12", b"12345678901234567890.123"),
        ('{"type": "integer"}', b"1e400", b"12345678901234567890.5"),
        (
            '{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}',
            b"10000000000000000000000000",
            b"10000000000000000000000000.0",
        ),
        ('{"maximum": 1e400}', b"1e400", b"11e399"),
        ('{"minimum": 1e-400}', b"1e-400", b"9e-401"),
        ('{"const": 1e400}', b"10e399", b"1e401"),
        ('{"enum": [100000000000000000000]}', b"1e20", b"100000000000000000001"),
        ('{"uniqueItems": true}', b"[1e400, 2e400]", b"[1e400, 10e399]"),
        ('{"minLength": 2}', b'"\\ud800\\ud800"', b'"\\ud800"'),
        ('{"const": "\\ud800"}', b'"\\uD800"', b'"\\uD801"'),
        ('{"required": ["\\udfff"]}', b'{"\\uDFFF": 1}', b'{"\\uDFFE": 1}'),
    ],
)
def test_huge_numbers_and_unpaired_surrogates_are_compared_exactly(
    schema: str, follows: bytes, not_following: bytes
) -> None:
    content = json_schema_content(schema)

    assert content.fault(follows, StepBudget()) is None
    assert content.fault(not_following, StepBudget()) is not None


def test_only_unusual_json_texts_have_unbounded_steps() -> None:
    content = json_schema_content('{"not": {"const": 1}}')

    assert {text for text in UNUSUAL if steps_of(content.fault, text) < UNBOUNDED} == set()
    for usual in (b"18446744073", b"9999999999999999999", b"-9223372036854775808", b"1.5e-99", b'"\\ud83d\\ude00"'):
        assert steps_of(content.fault, usual) <= INLINE_STEPS
    assert steps_of(content.fault, b'"12345678901234567890 1e400 \\\\ud800"') <= INLINE_STEPS


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strang"}, 'the JSON Schema cannot be used: /type: "strang"'),
        ({"properties": {"a": {"allOf": [{}, {"minimum": "x"}]}}}, "used: /properties/a/allOf/1/minimum: "),
        ({"properties": {"a": {"pattern": "("}}}, r'used: "\("'),  # found after a translation that moved it
        (reduce(lambda inner, _: {"properties": {"a" * 30: inner}}, range(9), {"type": 1}), "used: 1 is not"),
        ({"pattern": "(?>a)b"}, "regex"),
        ({"$ref": "http://example.com/x.json"}, "references are not fetched"),
        ({"$ref": "file:///etc/passwd"}, "references are not fetched"),
        (7, "an object, true or false"),
    ],
)
def test_rejects_unusable_json_schema_with_the_reason(schema: Any, said: str) -> None:
    with pytest.raises(SchemaUnusable, match=said):
        json_schema_content(json.dumps(schema))


def test_references_are_resolved_among_the_given_schemas() -> None:
    content = json_schema_content(
        '{"$id": "https://x.example/a", "$ref": "money.json"}', {"money.json": '{"minimum": 0}'}
    )

    assert content.fault(b"1", StepBudget()) is None
    assert content.fault(b"-1", StepBudget()) is not None


def test_catastrophic_backtracking_pattern_is_matched_in_time() -> None:
    assert fault({"pattern": "^(a+)+$"}, b'"' + b"a" * 100_000 + b'b"') is not None
