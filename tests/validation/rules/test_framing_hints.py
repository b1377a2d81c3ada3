"""The text about a value with an id at a rule without ids, and the reverse, names the key to write."""

import pytest

from sluicegate.config.content_keys import Schema
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.rule import Side
from tests.registry.test_formats import OneSchema
from tests.validation.rules.records import record

AVRO = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}'
FRAMED = "it begins with a zero byte and an id, as serializers of a schema registry write them: the rule needs "


@pytest.mark.parametrize(
    ("text", "format", "framed", "wrong"),
    [("{}", "json", b"\0\0\0\0\7{}", b"{"), (AVRO, "avro", b"\0\0\0\0\7\2a", b"\2")],
)
def test_a_value_with_an_id_at_a_rule_without_is_named(text: str, format: str, framed: bytes, wrong: bytes) -> None:
    rule = SchemaRules({}).of_schema(Schema(text=text, format=format), Side.VALUE)  # type: ignore[arg-type]

    assert f"{FRAMED}schema.envelope: confluent, or schema.registry" in str(rule.fault(record(framed)))
    assert FRAMED not in str(rule.fault(record(wrong)))


@pytest.mark.parametrize(("value", "is_json"), [(b'{"a": 1}', True), (b"[1]", True), (b"Obj\1", False), (b"", False)])
def test_json_without_an_id_at_a_rule_of_a_registry_is_named(value: bytes, is_json: bool) -> None:
    rule = SchemaRules({"main": OneSchema(json_schema_content("{}"))}).of_schema(Schema(registry="main"), Side.VALUE)

    said = str(rule.fault(record(value)))
    assert said.startswith("the value names no schema: ")
    assert said.endswith("the rule needs schema.file") == is_json
