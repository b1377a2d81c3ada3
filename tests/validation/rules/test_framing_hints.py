"""The message about a value with an id for a rule without ids, and vice versa, names the key to write."""

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from sluicegate.config.content_keys import Schema
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.protobuf.schema import protobuf_content
from sluicegate.validation.rules.rule import Side, StepBudget
from sluicegate.validation.rules.schemas.content import Content
from tests.registry.test_formats import OneSchema
from tests.validation.rules.records import record

AVRO = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}'
FRAMED = "it begins with a zero byte and an id, which serializers of a schema registry write: set "


@pytest.mark.parametrize(
    ("text", "format", "framed", "wrong"),
    [("{}", "json", b"\0\0\0\0\7{}", b"{"), (AVRO, "avro", b"\0\0\0\0\7\2a", b"\2")],
)
def test_hints_at_schema_id_in_value_if_the_rule_has_no_registry(
    text: str, format: str, framed: bytes, wrong: bytes
) -> None:
    rule = SchemaRules({}).of_schema(Schema(text=text, format=format), Side.VALUE)  # type: ignore[arg-type]

    assert f"{FRAMED}schema.envelope: confluent or schema.registry" in str(rule.fault(record(framed)))
    assert FRAMED not in str(rule.fault(record(wrong)))


@pytest.mark.parametrize(("value", "is_json"), [(b'{"a": 1}', True), (b"[1]", True), (b"Obj\1", False), (b"", False)])
def test_hints_at_plain_json_if_the_rule_requires_a_schema_id(value: bytes, is_json: bool) -> None:
    rule = SchemaRules({"main": OneSchema(json_schema_content("{}"))}).of_schema(Schema(registry="main"), Side.VALUE)

    said = str(rule.fault(record(value)))
    assert said.startswith("the value names no schema: ")
    assert said.endswith("set schema.file in the rule") == is_json


STRING_FIELD = FieldDescriptorProto(
    name="a", number=1, type=FieldDescriptorProto.TYPE_STRING, label=FieldDescriptorProto.LABEL_OPTIONAL
)
PROTO = FileDescriptorSet(
    file=[
        FileDescriptorProto(
            name="m.proto", syntax="proto3", message_type=[DescriptorProto(name="M", field=[STRING_FIELD])]
        )
    ]
).SerializeToString()


@pytest.mark.parametrize(
    ("content", "encoding", "wrong"),
    [(avro_content(AVRO), "Avro", b"\2"), (protobuf_content(PROTO, "M"), "Protobuf", b"\x0a\x7f")],
)
def test_hints_at_json_if_the_rule_requires_a_binary_encoding(content: Content, encoding: str, wrong: bytes) -> None:
    hint = f"? It looks like JSON, but the topic requires {encoding}: use the serializer for {encoding}"

    assert str(content.fault(b'{"a": "b"}\n', StepBudget())).endswith(hint)
    assert "JSON" not in str(content.fault(wrong, StepBudget()))
