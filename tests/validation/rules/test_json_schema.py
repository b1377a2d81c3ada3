"""What follows a JSON Schema, and how it is told what does not."""

import json
from typing import Any

import pytest

from sluicegate.validation.rules.content import SchemaUnusable
from sluicegate.validation.rules.json_schema import MAX_DEPTH, json_schema_content

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
    return json_schema_content(json.dumps(schema)).fault(value)


def test_what_follows_it_passes() -> None:
    assert fault(ORDER, b'{"amount": 1, "id": "12345678-1234-5678-1234-567812345678", "lines": [{"sku": 1}]}') is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b'{"amount": -7}', "does not follow its JSON Schema: /amount: minimum (0)"),
        (b'{"amount": "secret"}', 'does not follow its JSON Schema: /amount: type (["number"])'),
        (b"{}", 'does not follow its JSON Schema: the root: required ("amount")'),
        (b'{"amount": 1, "lines": [{"sku": 1}, {}]}', 'does not follow its JSON Schema: /lines/1: required ("sku")'),
        (b'{"amount": 1, "secret": 1}', "does not follow its JSON Schema: the root: additionalProperties"),
        (b'{"amount": 1, "id": "secret"}', 'does not follow its JSON Schema: /id: format ("uuid")'),
        (
            b"{} {}",
            "is not JSON: something stands behind the JSON; write one value to a record, and nothing else (at byte 3)",
        ),
        (b'{"amount": NaN}', "is not JSON: a value was expected (at byte 11)"),
        (b'"\\ud800"', "is JSON with half a character in a string (a lone surrogate), which no reader can use"),
    ],
)
def test_what_does_not_is_told_by_path_and_keyword(value: bytes, said: str) -> None:
    assert fault(ORDER, value) == said


def test_names_that_are_the_clients_are_not_told() -> None:
    words = fault({"additionalProperties": {"type": "integer"}}, b'{"secret": "x"}')

    assert words == 'does not follow its JSON Schema: /…: type (["integer"])'


def test_of_many_mistakes_some_are_told() -> None:
    words = fault({"items": {"type": "integer"}}, json.dumps(["x"] * 1000).encode())

    assert words is not None
    assert words.endswith("; and 100 or more others")
    assert len(words) < 400


@pytest.mark.parametrize("draft", DRAFTS)
def test_all_drafts_are_known_and_check_formats(draft: str) -> None:
    schema = {"$schema": draft, "type": "string", "format": "ipv4"}

    assert fault(schema, b'"10.0.0.1"') is None
    assert fault(schema, b'"10.0.0.256"') is not None


def test_depth_is_bounded() -> None:
    deep = b"[" * 400 + b"]" * 400

    assert fault({"enum": [1]}, deep) == f"is JSON nested more than {MAX_DEPTH} levels deep"
    assert "deeper" in str(fault({}, b"[" * 40_000))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strang"}, "no JSON Schema"),
        ({"pattern": "(?=a)b"}, "regex"),
        ({"$ref": "http://example.com/x.json"}, "nothing is fetched"),
        ({"$ref": "file:///etc/passwd"}, "nothing is fetched"),
        (7, "an object, or true or false"),
    ],
)
def test_what_cannot_be_used_is_told(schema: Any, said: str) -> None:
    with pytest.raises(SchemaUnusable, match=said):
        json_schema_content(json.dumps(schema))


def test_references_are_found_among_those_given() -> None:
    content = json_schema_content(
        '{"$id": "https://x.example/a", "$ref": "money.json"}', {"money.json": '{"minimum": 0}'}
    )

    assert content.fault(b"1") is None
    assert content.fault(b"-1") is not None


def test_a_bad_pattern_for_backtracking_is_matched_at_once() -> None:
    assert fault({"pattern": "^(a+)+$"}, b'"' + b"a" * 100_000 + b'b"') is not None
