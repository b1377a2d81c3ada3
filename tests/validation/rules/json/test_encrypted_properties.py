"""If a registry encrypts properties, its schema has no requirements for their strings, wherever it refers to them."""

import json
import time
from typing import Any

import pytest

from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.rule import StepBudget
from sluicegate.validation.rules.schemas.field_tags import FieldChange

TAGGED = {"type": "string", "confluent:tags": ["PII"]}
CIPHERTEXT = "2w5KYoJWWKPj/GfoAA6A5iWjE7VGxvtn1dFMfgYpaQYk0sWQw6TIbv0="
SHORT = {"type": "string", "maxLength": 5}
PII = [FieldChange("pii", frozenset({"PII"}))]


def _follows(schema: dict[str, Any], value: Any, changes: list[FieldChange] = PII) -> bool:
    content = json_schema_content(json.dumps(schema), encrypted=changes)
    return content.fault(json.dumps(value).encode(), StepBudget()) is None


@pytest.mark.parametrize(
    ("schema", "others"),
    [
        ({"patternProperties": {"^m": SHORT}}, {"more": "too long"}),
        ({"patternProperties": {"^m": SHORT, "ail$": SHORT}}, {"ail": "too long"}),
        ({"patternProperties": {"^m(?!o)": SHORT}}, {"mine": "too long"}),
        ({"allOf": [{"additionalProperties": SHORT}]}, {"other": "too long"}),
        ({"allOf": [{"patternProperties": {"^x": True}, "additionalProperties": SHORT}]}, {"other": "too long"}),
        ({"allOf": [{"properties": {"other": SHORT}, "unevaluatedProperties": SHORT}]}, {"other": "too long"}),
    ],
)
def test_relaxes_only_encrypted_properties_under_unnamed_property_keywords(
    schema: dict[str, Any], others: dict[str, str]
) -> None:
    whole = {"properties": {"mail": TAGGED}, **schema}

    assert not _follows(whole, {"mail": CIPHERTEXT}, changes=[])
    assert _follows(whole, {"mail": CIPHERTEXT})
    assert not _follows(whole, {"mail": CIPHERTEXT} | others)
    assert not _follows(whole, {"mail": 1})


@pytest.mark.parametrize("keyword", [{"const": {"mail": "a@b.c"}}, {"enum": [{"mail": "a@b.c"}]}])
def test_skips_equality_keywords_for_objects_with_encrypted_properties(keyword: dict[str, Any]) -> None:
    assert _follows({"properties": {"mail": TAGGED}, **keyword}, {"mail": CIPHERTEXT})
    assert not _follows({"properties": {"id": {"type": "string"}}, **keyword}, {"mail": CIPHERTEXT})


def test_validates_unencrypted_property_with_the_name_of_an_encrypted_one() -> None:
    schema = {"properties": {"mail": TAGGED, "map": {"type": "object", "additionalProperties": SHORT}}}

    assert not _follows(schema, {"mail": CIPHERTEXT, "map": {"mail": CIPHERTEXT}})


def test_costly_pattern_on_encrypted_property_takes_linear_time() -> None:
    schema = {"properties": {"a" * 60 + "!": TAGGED}, "patternProperties": {"^(a+)+$": SHORT}}
    start = time.process_time()

    assert _follows(schema, {"a" * 60 + "!": CIPHERTEXT})
    assert time.process_time() - start < 5
