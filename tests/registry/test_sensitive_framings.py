"""Sensitive fields in values from other registries' serializers are masked in place, and consumers can read the values.

The oracles are AWS's and Apicurio's serializers and deserializers.
"""

import hmac
import io
import json
import zlib
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from sluicegate.validation.rules.rule import Header, SchemaError
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema
from sluicegate.validation.sensitive.edits import Unmaskable
from sluicegate.validation.sensitive.paths import Action, FieldPolicy, tree_of
from sluicegate.validation.sensitive.schema_values import SchemaValues
from tests.oracle.java_serializers import (
    GlueValue,
    apicurio_protobuf,
    glue_values,
    read_apicurio_protobuf,
    read_glue_values,
)
from tests.registry.apicurio import Apicurio
from tests.registry.test_apicurio_native import native_url, register_artifact, rule_for
from tests.registry.test_glue import SUFFIXES, framed_value, rule_over
from tests.registry.test_protobuf_serializers import classes_of
from tests.validation.rules.records import record

MASK = FieldPolicy("pii", (("mail",),), Action.MASK, "*" * 200)
HASH = FieldPolicy("pii", (("mail",),), Action.HASH, key=b"k" * 16)
REPLACED = {
    Action.MASK: "*" * 200,
    Action.HASH: hmac.new(b"k" * 16, b"me@example.com", "sha256").hexdigest(),
}
"""The stored replacement for me@example.com."""
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "mail", "type": "string"}, {"name": "n", "type": "long"}],
}
GOOD = b"\x1cme@example.com\x0e"
"""A datum of SCHEMA: the address, and 7."""
TEXT_OF_JSON = b'{"n": 7, "mail": "me@example.com"}'
FILE = 'syntax = "proto3"; package shop; message R { string mail = 1; int64 n = 2; } message Other { int64 y = 1; }'


def mask_value(
    rule: HasRegisteredSchema, policy: FieldPolicy, value: bytes, topic: str, headers: tuple[Header, ...] = ()
) -> bytes:
    values = SchemaValues([policy], (tree_of([policy]),), rule)
    found = values.masked(record(value, topic=topic, headers=headers), lambda _work: None, 1 << 24)
    return value if found is None else found.data


def avro_of(data: bytes) -> dict[str, Any]:
    stream = io.BytesIO(data)
    read: Any = fastavro.schemaless_reader(stream, SCHEMA, None)
    assert stream.read() == b""
    return dict(read)


@pytest.mark.long
@pytest.mark.parametrize("policy", [MASK, HASH], ids=["mask", "hash"])
def test_aws_glue_deserializer_reads_masked_values(policy: FieldPolicy, tmp_path: Path) -> None:
    file = FileDescriptorSet.FromString(descriptor_set_of("shop.proto", FILE, {})).file[-1].SerializeToString()
    new = classes_of(FILE)("shop.R")
    values = [
        GlueValue(UUID(int=1), "AVRO", json.dumps(SCHEMA).encode(), GOOD),
        GlueValue(UUID(int=2), "JSON", b'{"type": "object"}', TEXT_OF_JSON),
        GlueValue(UUID(int=3), "PROTOBUF", file, new(mail="me@example.com", n=7).SerializeToString(), "R"),
    ]
    written = glue_values(values)
    for value, (_, text) in zip(values, written, strict=True):
        (tmp_path / f"{value.version}.{SUFFIXES[value.language]}").write_text(text)
    rule = rule_over(tmp_path)

    found = [mask_value(rule, policy, data, "orders") for data, _ in written]

    assert [each[:18] for each in found] == [data[:18] for data, _ in written]
    (avro, first), (text, second), (message, third) = read_glue_values(found)
    assert [first, second, third] == [value.version for value in values]
    replaced = REPLACED[policy.action]
    assert avro_of(avro) == {"mail": replaced, "n": 7}
    assert json.loads(text) == {"mail": replaced, "n": 7}
    # AWS writes a message's number in its file before the data: R is the first.
    index = len(message) - new(mail=replaced, n=7).ByteSize()
    assert new.FromString(message[index:]) == new(mail=replaced, n=7)
    assert message[:index] == written[2][0][18 : 18 + index]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (framed_value(UUID(int=1), zlib.compress(GOOD), 5), "compressed by its serializer"),
        (framed_value(UUID(int=1), zlib.compress(GOOD, 0), 5), "compressed by its serializer"),
        (framed_value(UUID(int=1), GOOD[:-1]), "does not match its Avro schema"),
        (framed_value(UUID(int=1), GOOD + b"\0"), "does not match its Avro schema"),
        (framed_value(UUID(int=1), zlib.compress(GOOD)[:-1], 5), "names no schema"),
        (framed_value(UUID(int=1), GOOD, 1), "names no schema"),
        (framed_value(UUID(int=9), GOOD), "names no schema"),
        (b"\0\0\0\0\1" + GOOD, "names no schema"),
        (GOOD, "names no schema"),
        (b"", "names no schema"),
    ],
)
def test_rejects_glue_framing_with_bytes_that_masking_cannot_read(value: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / f"{UUID(int=1)}.avsc").write_text(json.dumps(SCHEMA))

    with pytest.raises(Unmaskable, match=words):
        mask_value(rule_over(tmp_path), MASK, value, "orders")


def test_masking_fails_if_the_glue_schema_is_unusable(tmp_path: Path) -> None:
    (tmp_path / f"{UUID(int=1)}.avsc").write_text('{"type": "unknown"}')

    with pytest.raises(SchemaError, match="cannot be used"):
        mask_value(rule_over(tmp_path), MASK, framed_value(UUID(int=1), GOOD), "orders")


@pytest.mark.long
@pytest.mark.parametrize("with_headers", [False, True], ids=["before the data", "in headers"])
def test_apicurio_deserializer_reads_masked_messages(apicurio: Apicurio, with_headers: bool) -> None:
    topic = f"masked-headers-{with_headers}".lower()
    file = FileDescriptorSet.FromString(descriptor_set_of("shop.proto", FILE, {})).file[-1].SerializeToString()
    new = classes_of(FILE)("shop.R")
    data = new(mail="me@example.com", n=7).SerializeToString()
    [(value, headers)] = apicurio_protobuf(native_url(apicurio), topic, file, [("R", data)], with_headers)
    assert value.endswith(data)
    assert (value == data) is with_headers

    found = [mask_value(rule_for(apicurio), policy, value, topic, headers) for policy in (MASK, HASH)]

    read = read_apicurio_protobuf(native_url(apicurio), topic, [(each, headers) for each in found], with_headers)
    expected = [new(mail=REPLACED[policy.action], n=7) for policy in (MASK, HASH)]
    assert [new.FromString(each) for each in read] == expected
    prefix = len(value) - len(data)
    assert [each[:prefix] for each in found] == [value[:prefix]] * 2


@pytest.mark.parametrize("kind", ["globalId", "contentId"])
@pytest.mark.parametrize("place", ["eight bytes", "four bytes", "header"])
@pytest.mark.parametrize("language", ["AVRO", "JSON"])
def test_masking_keeps_the_apicurio_schema_id(apicurio: Apicurio, kind: str, place: str, language: str) -> None:
    schema = json.dumps(SCHEMA) if language == "AVRO" else '{"type": "object"}'
    number: int = register_artifact(apicurio, f"masked-{language.lower()}-value", schema, language)[kind]
    prefix = {"eight bytes": b"\0" + number.to_bytes(8), "four bytes": b"\0" + number.to_bytes(4), "header": b""}[place]
    headers: tuple[Header, ...] = ((f"apicurio.value.{kind}".encode(), number.to_bytes(8)),) if not prefix else ()
    rule = rule_for(apicurio, id=kind)
    body = GOOD if language == "AVRO" else TEXT_OF_JSON

    found = mask_value(rule, MASK, prefix + body, "masked", headers)

    assert found.startswith(prefix)
    plain = found[len(prefix) :]
    assert (avro_of(plain) if language == "AVRO" else json.loads(plain)) == {"mail": MASK.replacement, "n": 7}
    with pytest.raises(Unmaskable, match=r"does not match its Avro schema|ends in the middle of its JSON"):
        mask_value(rule, MASK, prefix + body[:-1], "masked", headers)
    unknown = ((f"apicurio.value.{kind}".encode(), (1 << 40).to_bytes(8)),) if headers else ()
    with pytest.raises(Unmaskable, match="names no schema"):
        mask_value(rule, MASK, (b"" if headers else b"\0" + (1 << 40).to_bytes(8)) + body, "masked", unknown)
