"""The rules from an AsyncAPI document accept and reject the same values as the reference library of each schema
language."""

import json
import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import jsonschema
import pytest
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.config.contracts.asyncapi.documents import SHOP_2, SHOP_3, Validator, channel_with, load_document

GOOD = {"id": "1", "state": "on"}
VALUES: list[Any] = [
    GOOD,
    GOOD | {"lines": [{"sku": "a", "parts": [{"sku": "b", "parts": []}]}]},
    GOOD | {"lines": [{"sku": "a", "parts": [{"sku": 1}]}]},
    GOOD | {"lines": [{}]},
    GOOD | {"state": True},
    GOOD | {"state": "of"},
    GOOD | {"id": ""},
    GOOD | {"$ref": 5},
    GOOD | {"$ref": "x"},
    {"id": "1"},
    [],
    "x",
    GOOD | {"more": [None]},
]
HEADERS = [
    ("tenant", "ab", "ab"),
    ("tenant", "a", "a"),
    ("tenant", "9ab", "9ab"),
    ("tenant", "abcdef", "abcdef"),
    ("tenant", "a\nb", "a\nb"),
    ("attempt", "3", 3),
    ("attempt", "-12", -12),
    ("attempt", "3.5", 3.5),
    ("attempt", "three", "three"),
    ("kind", "new", "new"),
    ("kind", "a|b", "a|b"),
    ("kind", "a", "a"),
    ("ratio", "0.25", 0.25),
    ("ratio", "1e3", 1e3),
    ("ratio", "1,5", "1,5"),
    ("dry", "true", True),
    ("dry", "1", 1),
    ("trace", "1fa6ef40-8f47-40a8-8cf6-f8607d0066ef", "1fa6ef40-8f47-40a8-8cf6-f8607d0066ef"),
    ("trace", "1fa6ef40", "1fa6ef40"),
    ("other", "x", "x"),
]
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "string"}, {"name": "amount", "type": ["null", "long"]}],
}
PROTO = """syntax = "proto3";
package shop; // message Not {
message Order { string id = 1; message Line { string sku = 1; } repeated Line lines = 2; }
"""
AVRO_TYPE = "application/vnd.apache.avro;version=1.9.0"
PROTO_TYPE = "application/vnd.google.protobuf;version=3"


def json_schema_at(document: str, pointer: str) -> jsonschema.Draft7Validator:
    """Return a validator that resolves references in the document itself."""
    whole = yaml.load(document.replace("[on, off]", "['on', 'off']"), yaml.SafeLoader)  # YAML 1.1
    return jsonschema.Draft7Validator(
        {**whole, "allOf": [{"$ref": pointer}]}, format_checker=jsonschema.FormatChecker()
    )


@pytest.mark.parametrize("document", [SHOP_2, SHOP_3], ids=["2.6", "3.0"])
def test_payload_verdicts_equal_those_of_the_jsonschema_library(document: str, tmp_path: Path) -> None:
    rules = Validator(load_document(tmp_path, document))
    schema = json_schema_at(document, "#/components/schemas/order")

    verdicts = {
        json.dumps(value): "contract.payload" not in rules.violated_names(json.dumps(value).encode())
        for value in VALUES
    }

    assert verdicts == {json.dumps(value): schema.is_valid(value) for value in VALUES}
    assert sum(verdicts.values()) == 4


@pytest.mark.parametrize("document", [SHOP_2, SHOP_3], ids=["2.6", "3.0"])
def test_header_verdicts_equal_those_of_the_jsonschema_library(document: str, tmp_path: Path) -> None:
    rules = Validator(load_document(tmp_path, document))
    schema = json_schema_at(document, "#/components/messageTraits/common/headers")

    def is_accepted(**headers: str) -> bool:
        pairs = tuple((name.encode(), text.encode()) for name, text in headers.items())
        return not any("headers" in name for name in rules.violated_names(None, b"1", pairs))

    ours = {(name, text): is_accepted(**{"tenant": "ab", name: text}) for name, text, _ in HEADERS}

    assert ours == {(name, text): schema.is_valid({"tenant": "ab", name: value}) for name, text, value in HEADERS}
    assert not is_accepted(kind="new")


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ('{type: string, pattern: "^[0-9]+$", maxLength: 3}', ["1", "1234", "x1", "", "12"]),
        ('{type: string, minLength: 2}', ["ä", "äö", ""]),
        ('{type: string, enum: [a, "b\\"c", "\\u00e9"]}', ["a", 'b"c', "é", "b"]),
        ('{const: x}', ["x", "y"]),
        ('{type: string, format: uuid}', [f"1fa6ef40-8f47-40a8-8cf6-f8607d0066{end}" for end in ("ef", "efe")]),
        ('{type: [string, "null"], pattern: b}', ["abc", "ac", None]),
        ('{type: string}', ["abc", None]),
        ('{type: object, required: [id], properties: {id: {type: integer}}}', [{"id": 1}, {"id": "1"}, {}, [], None]),
    ],
)  # fmt: skip
def test_key_verdicts_equal_those_of_the_jsonschema_library(key: str, values: list[Any], tmp_path: Path) -> None:
    rules = Validator(load_document(tmp_path, channel_with("{}", f"bindings: {{kafka: {{key: {key}}}}}")))
    schema = jsonschema.Draft7Validator(yaml.safe_load(key), format_checker=jsonschema.FormatChecker())

    def key_of(value: Any) -> bytes | None:
        return None if value is None else value.encode() if isinstance(value, str) else json.dumps(value).encode()

    ours = [rules.violated_names(b"{}", key_of(value)) == [] for value in values]

    assert ours == [schema.is_valid(value) for value in values]


def test_rejects_binary_key_if_the_schema_requires_a_string(tmp_path: Path) -> None:
    document = channel_with("{}", "bindings: {kafka: {key: {type: string, minLength: 1}}}")

    assert Validator(load_document(tmp_path, document)).violated_names(b"{}", b"\xff\xfe") == ["contract.key"]


def avro_bytes(schema: Any, value: Any) -> bytes:
    buffer = BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), value)
    return buffer.getvalue()


def avro_reads(data: bytes) -> bool:
    buffer = BytesIO(data)
    try:
        fastavro.schemaless_reader(buffer, fastavro.parse_schema(AVRO), None)
    except (EOFError, IndexError, UnicodeDecodeError, ValueError):
        return False
    return not buffer.read()


@pytest.mark.parametrize("form", ["inline", "file"])
@pytest.mark.parametrize("version", [2, 3])
def test_avro_payload_verdicts_equal_those_of_fastavro(version: int, form: str, tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text("// a comment\n" + json.dumps(AVRO, indent="\t"))
    schema = {
        "inline": json.dumps(AVRO),
        "file": '{"$ref": "./order.avsc"}',
    }[form]
    document = (
        channel_with(f'{{schemaFormat: "{AVRO_TYPE}", schema: {schema}}}')
        if version == 3
        else _version_2(f'{{schemaFormat: "{AVRO_TYPE}", contentType: avro/binary, payload: {schema}}}')
    )
    rules = Validator(load_document(tmp_path, document))
    good = avro_bytes(AVRO, {"id": "1", "amount": 5})
    data = [
        good,
        avro_bytes(AVRO, {"id": "", "amount": None}),
        good[:-1],
        good + b"x",
        b"\x02\xff\x00",
        b"\x021\x06",
        b"",
    ]

    assert [rules.violated_names(each) == [] for each in data] == [avro_reads(each) for each in data]


def _version_2(message: str) -> str:
    return (
        "asyncapi: 2.6.0\ninfo: {title: t, version: '1'}\nservers: {s: {url: h, protocol: kafka}}\n"
        f"channels: {{t: {{publish: {{message: {message}}}}}}}\n"
    )


@pytest.mark.parametrize("is_in_file", [False, True])
def test_protobuf_payload_verdicts_equal_those_of_the_protobuf_library(is_in_file: bool, tmp_path: Path) -> None:
    (tmp_path / "order.proto").write_text(PROTO)
    schema = '{$ref: "order.proto"}' if is_in_file else json.dumps(PROTO)
    rules = Validator(load_document(tmp_path, channel_with(f'{{schemaFormat: "{PROTO_TYPE}", schema: {schema}}}')))
    file = descriptor_pb2.FileDescriptorProto(name="o.proto", package="shop", syntax="proto3")
    field = file.message_type.add(name="Order").field.add(name="id", number=1)
    field.type, field.label = field.TYPE_STRING, field.LABEL_OPTIONAL
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    order = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    data = [order(id="1").SerializeToString(), b"", b"\x0a\x05ab", b"\x0a\x01\xff", b"\x80"]

    def is_read(each: bytes) -> bool:
        try:
            order.FromString(each)
        except Exception:  # the library raises several kinds of errors
            return False
        return True

    assert [rules.violated_names(each) == [] for each in data] == [is_read(each) for each in data]


@pytest.mark.parametrize(("encoding", "location"), [("confluent", "payload"), (None, "payload"), (None, None)])
def test_binding_with_schema_id_in_payload_requires_the_id_before_avro_data(
    encoding: str | None, location: str | None, tmp_path: Path
) -> None:
    given = {"schemaIdPayloadEncoding": encoding, "schemaIdLocation": location}
    binding = json.dumps({key: value for key, value in given.items() if value is not None})
    document = channel_with(
        f'{{schemaFormat: "{AVRO_TYPE}", schema: {json.dumps(AVRO)}}}', f"bindings: {{kafka: {binding}}}"
    ).replace("protocol: kafka", 'protocol: kafka, bindings: {kafka: {schemaRegistryUrl: "http://r"}}')
    rules = Validator(load_document(tmp_path, document))
    data = avro_bytes(AVRO, {"id": "1", "amount": 5})

    assert rules.violated_names(struct.pack(">bI", 0, 7) + data) == []
    assert rules.violated_names(data) == ["contract.payload"]


def test_binding_with_schema_id_in_header_expects_plain_avro_data(tmp_path: Path) -> None:
    document = channel_with(
        f'{{schemaFormat: "{AVRO_TYPE}", schema: {json.dumps(AVRO)}}}', "bindings: {kafka: {schemaIdLocation: header}}"
    )

    assert Validator(load_document(tmp_path, document)).violated_names(avro_bytes(AVRO, {"id": "1", "amount": 5})) == []


@pytest.mark.parametrize("version", [2, 3])
def test_accepts_record_that_matches_any_message_of_its_channel(version: int, tmp_path: Path) -> None:
    cat = "{type: object, required: [meows], properties: {meows: {type: boolean}}}"
    dog = "{type: object, required: [barks], properties: {barks: {type: boolean}}}"
    document = (
        channel_with(cat).replace("      m:\n", f"      n: {{payload: {dog}}}\n      m:\n")
        if version == 3
        else _version_2(f"{{oneOf: [{{payload: {cat}}}, {{payload: {dog}}}]}}")
    )
    loaded = load_document(tmp_path, document)
    values = [{"meows": True}, {"barks": False}, {"meows": 1}, {}, {"barks": True, "meows": 1}]
    schemas = [jsonschema.Draft7Validator(yaml.safe_load(each)) for each in (cat, dog)]

    ours = [Validator(loaded).violated_names(json.dumps(value).encode()) == [] for value in values]

    assert ours == [any(schema.is_valid(value) for schema in schemas) for value in values]
    assert any("exactly one of 2 messages" in each.what for each in loaded.source.contracts["t"].unchecked)


@pytest.mark.parametrize(
    ("written", "uri"),
    [
        ("draft-04", "http://json-schema.org/draft-04/schema#"),
        ("2020-12", "https://json-schema.org/draft/2020-12/schema"),
    ],
)
def test_schema_format_selects_the_json_schema_draft(written: str, uri: str, tmp_path: Path) -> None:
    schema = "{type: object, properties: {a: {type: number, minimum: 1, exclusiveMinimum: true}}}"
    schema = (
        schema if written == "draft-04" else schema.replace("minimum: 1, exclusiveMinimum: true", "exclusiveMinimum: 1")
    )
    document = channel_with(f'{{schemaFormat: "application/schema+json;version={written}", schema: {schema}}}')
    rules = Validator(load_document(tmp_path, document))
    validator = jsonschema.validators.validator_for({"$schema": uri})(yaml.safe_load(schema))

    for value in ({"a": 1}, {"a": 1.5}, {"a": "x"}, {}):
        assert (rules.violated_names(json.dumps(value).encode()) == []) == validator.is_valid(value)
