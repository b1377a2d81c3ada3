"""Protobuf schemas work as they are usually registered: by Confluent's serializer, and as text in a registry."""

from base64 import b64encode
from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.confluent.type import decimal_pb2, variant_pb2
from confluent_kafka.schema_registry.confluent.types import decimal_pb2 as earlier_decimal_pb2
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from sluicegate.proxy.registry.confluent_api import SchemaText
from sluicegate.proxy.registry.http import RegistryHttp
from sluicegate.proxy.registry.schema_compiler import SchemaCompiler, compile_inline
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from sluicegate.validation.rules.protobuf.schema import protobuf_content
from sluicegate.validation.rules.rule import SchemaError, Side
from sluicegate.validation.rules.schemas.content import SchemaLanguage, SchemaUnusable
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema
from tests.registry.apicurio import Apicurio
from tests.validation.rules.records import record

FOLDER = resources.files("sluicegate.validation.rules.protobuf") / "imports"
WITH_MAP = """syntax = "proto3"; package shop;
message Outer {
  map<string, string> m = 1;
  message Inner { bytes x = 1; }
  map<string, Inner> n = 2;
  message Last { fixed64 y = 1; }
}"""


def rule_of(apicurio: Apicurio, compiler: SchemaCompiler = compile_inline) -> HasRegisteredSchema:
    return HasRegisteredSchema(Side.VALUE, SchemaRegistry("main", RegistryHttp(apicurio.url), compiler=compiler))


def file_descriptor_of(text: str) -> FileDescriptorProto:
    """Return the descriptor of `text`, the last file in protoc's output."""
    files = FileDescriptorSet.FromString(descriptor_set_of("file.proto", text, {}))
    return files.file[-1]


def classes_of(text: str) -> Callable[[str], type[Message]]:
    """Return a function that finds the message classes of a file by full name, in a separate pool."""
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(descriptor_set_of("file.proto", text, {})).file:
        pool.Add(file)
    return lambda name: GetMessageClass(pool.FindMessageTypeByName(name))


def declaration_lines(file: FileDescriptorProto) -> list[str]:
    """Return a descriptor as lines, without the names that protoc derives from other names."""
    return [line for line in str(file).splitlines() if "json_name" not in line]


def serialize(apicurio: Apicurio, topic: str, message: Message) -> bytes:
    """Serialize with Confluent's serializer, which registers the schema as a base64 descriptor."""
    with SchemaRegistryClient({"url": apicurio.url}) as client:
        serializer = ProtobufSerializer(type(message), client, {"use.deprecated.format": False})
        made = serializer(message, SerializationContext(topic, MessageField.VALUE))
    assert made is not None
    return bytes(made)


@pytest.mark.parametrize("name", ["shop.Outer", "shop.Outer.Inner", "shop.Outer.Last"])
def test_accepts_records_of_confluents_protobuf_serializer(apicurio: Apicurio, name: str) -> None:
    new = classes_of(WITH_MAP)(name)
    fields = {"shop.Outer": {"m": {"k": "v"}}, "shop.Outer.Inner": {"x": b"\xff\x01"}, "shop.Outer.Last": {"y": 7}}
    topic = f"serialized.{name}"

    data = serialize(apicurio, topic, new(**fields[name]))

    assert rule_of(apicurio).fault(record(data, topic=topic)) is None
    assert "cannot be read as shop.Outer" in str(rule_of(apicurio).fault(record(data + b"\x0a\x05a", topic=topic)))


def test_protobuf_message_indexes_skip_map_entry_messages(apicurio: Apicurio) -> None:
    """As Java counts, [0,0] is Inner and [0,1] is Last; as Python counts, Inner is [0,1] and Last is [0,3]."""
    schema_id = apicurio.register("beside-value", WITH_MAP, "PROTOBUF")
    said = partial(violation_of, rule_of(apicurio), schema_id, "beside")
    inner, last = b"\x0a\x01\xff", b"\x09" + bytes(8)

    assert said(b"\x04\x00\x00" + inner) is None
    assert said(b"\x04\x00\x02" + inner) is None
    assert said(b"\x04\x00\x02" + last) is None
    assert said(b"\x04\x00\x06" + last) is None
    assert "cannot be read as shop.Outer.Last" in str(said(b"\x04\x00\x06" + b"\x09"))
    assert "cannot be read as shop.Outer.Inner" in str(said(b"\x04\x00\x00" + b"\x0a\x07"))
    assert "do not select a message" in str(said(b"\x04\x00\x04" + inner))


def violation_of(rule: HasRegisteredSchema, schema_id: int, topic: str, data: bytes) -> str | None:
    return rule.fault(record(b"\0" + schema_id.to_bytes(4) + data, topic=topic))


IMPORTING = [
    'import "confluent/meta.proto"; message M { string a = 1 [(confluent.field_meta).tags = "PII"]; }',
    'import "confluent/type/decimal.proto"; message M { confluent.type.Decimal a = 1; }',
    'import "confluent/types/decimal.proto"; message M { confluent.type.Decimal a = 1; }',
    'import "confluent/type/variant.proto"; message M { confluent.type.Variant a = 1; }',
    *(
        f'import "google/type/{file}.proto"; message M {{ google.type.{name} a = 1; }}'
        for file, name in [("money", "Money"), ("date", "Date"), ("latlng", "LatLng"), ("interval", "Interval")]
    ),
    'import "google/api/field_behavior.proto"; message M { string a = 1 [(google.api.field_behavior) = REQUIRED]; }',
    'import "google/api/annotations.proto"; message M { string a = 1; }',
    'import "google/rpc/status.proto"; message M { google.rpc.Status a = 1; }',
    'import "buf/validate/validate.proto"; message M { string a = 1 [(buf.validate.field).string.min_len = 2]; }',
    'import "buf/validate/validate.proto"; import "google/protobuf/timestamp.proto"; '
    "message M { google.protobuf.Timestamp a = 1 [(buf.validate.field).timestamp.lt_now = true]; }",
]


@pytest.mark.parametrize("text", IMPORTING)
def test_resolves_standard_proto_imports_that_serializers_do_not_register(apicurio: Apicurio, text: str) -> None:
    topic = f"importing.{IMPORTING.index(text)}"
    schema_id = apicurio.register(f"{topic}-value", f'syntax = "proto3"; {text}', "PROTOBUF")

    said = partial(violation_of, rule_of(apicurio), schema_id, topic)

    assert said(b"\x00\x0a\x00") is None
    assert "cannot be read as M" in str(said(b"\x00\x0a\x05a"))


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto2"; message M { optional string a_b = 1; optional int32 aB = 2; }',
        'syntax = "proto2"; message M { optional string a = 1 [json_name = "b"]; optional int32 b = 2; }',
        'syntax = "proto3"; message M { string a = 1; N n = 2; message N { int32 c = 1 [json_name = "d"]; '
        'int32 d = 2 [json_name = "c"]; } map<string, N> m = 3; }',
    ],
)
def test_accepts_protobuf_fields_with_conflicting_json_names(apicurio: Apicurio, text: str) -> None:
    topic = f"json-names.{hash(text)}"
    schema_id = apicurio.register(f"{topic}-value", text, "PROTOBUF")

    said = partial(violation_of, rule_of(apicurio), schema_id, topic)

    assert said(b"\x00\x0a\x01a") is None
    assert "cannot be read as M" in str(said(b"\x00\x0a\x05a"))


@pytest.mark.parametrize("theirs", [meta_pb2, decimal_pb2, variant_pb2, earlier_decimal_pb2])
def test_bundled_proto_files_equal_those_of_the_serializers(theirs: Any) -> None:
    wanted = FileDescriptorProto.FromString(theirs.DESCRIPTOR.serialized_pb)
    ours = file_descriptor_of((FOLDER / wanted.name).read_text())

    wanted.ClearField("options")
    ours.name = wanted.name
    assert declaration_lines(ours) == declaration_lines(wanted)


def test_validates_by_protobuf_descriptor_that_references_a_text_schema(apicurio: Apicurio) -> None:
    apicurio.register("cents", 'syntax = "proto3"; message Cents { int64 a = 1; }', "PROTOBUF")
    encoded = FileDescriptorProto(name="main.proto", syntax="proto3", dependency=["cents.proto"])
    encoded.message_type.add(name="Sum").field.add(name="of", number=1, type=11, label=1, type_name=".Cents")
    text = b64encode(encoded.SerializeToString()).decode()
    named = [{"name": "cents.proto", "subject": "cents", "version": 1}]
    schema_id = apicurio.register("sums-value", text, "PROTOBUF", named)

    said = partial(violation_of, rule_of(apicurio), schema_id, "sums")

    assert said(b"\x00\x0a\x02\x08\x07") is None
    assert "cannot be read as Sum" in str(said(b"\x00\x0a\x01\x08"))


def test_protobuf_message_with_map_entry_option_is_read_as_a_map(apicurio: Apicurio) -> None:
    text = """syntax = "proto3"; package shop; // option map_entry = true;
    message Outer { repeated MEntry m = 1; string s = 2;
      message MEntry { option map_entry = true; string key = 1; int32 value = 2; } message Inner { bytes x = 1; } }"""
    schema_id = apicurio.register("entries-value", text, "PROTOBUF")
    said = partial(violation_of, rule_of(apicurio), schema_id, "entries")
    written = classes_of('syntax = "proto3"; message Outer { map<string, int32> m = 1; }')("Outer")(m={"a": 1})

    assert said(b"\x00" + written.SerializeToString()) is None
    assert said(b"\x04\x00\x02" + b"\x0a\x01\xff") is None  # Java's own text counts the entry
    assert "cannot be read as shop.Outer" in str(said(b"\x00\x0a\x03\x0a\x05a"))


def test_protobuf_compile_errors_are_reported(apicurio: Apicurio) -> None:
    text = 'import "google/protobuf/any.proto"; message M { optional Missing a = 1; }'
    schema_id = apicurio.register("broken-value", text, "PROTOBUF")

    with pytest.raises(SchemaError) as raised:
        violation_of(rule_of(apicurio), schema_id, "broken", b"\x00")

    assert str(raised.value) == (
        f"schema {schema_id} of registry main cannot be used: the schema cannot be compiled: "
        f"registered-schema.proto:1:58: "
        '"Missing" is not defined.'
    )


def test_unsupported_protobuf_edition_is_unusable_with_advice() -> None:
    encoded = FileDescriptorProto(name="main.proto", syntax="editions", edition=1001)  # 2024
    encoded.message_type.add(name="M")
    for text in ('edition = "2024"; message M { }', b64encode(encoded.SerializeToString()).decode()):
        with pytest.raises(
            SchemaUnusable,
            match=r"supported edition 2023; .* that PySpark supports accept no later "
            r"edition: register",
        ):
            compile_inline(SchemaText(SchemaLanguage.PROTOBUF, text, ()))
    with pytest.raises(
        SchemaUnusable,
        match=r"maximum edition 2023 .* that PySpark supports accept no later "
        r"edition: register",
    ):
        protobuf_content(FileDescriptorSet(file=[encoded]).SerializeToString(), "M")
