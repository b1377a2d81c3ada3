"""Records of AWS's own serializers for Glue Schema Registry are validated with schemas from a folder."""

import zlib
from pathlib import Path
from uuid import UUID

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from sluicegate.config.registries import Registry
from sluicegate.proxy.registry.met_subjects import MetSubjects
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.schema_compiler import compile_inline
from sluicegate.proxy.registry.survey import RegistrySurvey
from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from sluicegate.validation.rules.rule import INLINE_STEPS, Outage, SchemaError, Side
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema
from tests.oracle.java_serializers import GlueValue, glue_values
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

AVRO, JSON, PROTOBUF = (UUID(int=n) for n in (1, 2, 3))
SUFFIXES = {"AVRO": "avsc", "JSON": "json", "PROTOBUF": "proto"}
# Messages are numbered in the order of their full names: Outer.Inner is 1, after Outer, and Outer.MEntry is 2.
FILE = """syntax = "proto3"; package shop;
message Zero { int64 y = 1; }
message Outer {
  map<string, string> m = 1;
  message Inner { string x = 1; }
}"""
LONG_RECORD = b'{"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}'


def rule_over(folder: Path) -> HasRegisteredSchema:
    section = Registry(type="glue", folder=str(folder))
    return HasRegisteredSchema(Side.VALUE, Registries().by_name({"main": section})["main"])


def framed_value(version: UUID, data: bytes, compression: int = 0) -> bytes:
    return bytes([3, compression]) + version.bytes + data


@pytest.mark.long
def test_validates_values_of_aws_glue_serializers_by_registered_schemas(tmp_path: Path) -> None:
    file = FileDescriptorSet.FromString(descriptor_set_of("shop.proto", FILE, {})).file[-1].SerializeToString()
    values = [
        GlueValue(version, language, schema, data, message, compression)
        for version, language, schema, data, message in (
            (AVRO, "AVRO", LONG_RECORD, b"\x06abc", ""),
            (JSON, "JSON", b'{"type": "object", "required": ["a"]}', b'{"a":1}', ""),
            (PROTOBUF, "PROTOBUF", file, b"\x08\x07", "Zero"),
            (PROTOBUF, "PROTOBUF", file, b"\x0a\x01x", "Outer.Inner"),
            (PROTOBUF, "PROTOBUF", file, b"\x0a\x06\x0a\x01k\x12\x01v", "Outer"),
        )
        for compression in ("NONE", "ZLIB")
    ]
    written = glue_values(values)
    for value, (_, text) in zip(values, written, strict=True):
        (tmp_path / f"{value.version}.{SUFFIXES[value.language]}").write_text(text)
    rule = rule_over(tmp_path)

    for value, (data, _) in zip(values, written, strict=True):
        assert data[1] == (0 if value.compression == "NONE" else 5)
        assert rule.fault(record(data, topic="orders")) is None, value
        plain = data[18:] if value.compression == "NONE" else zlib.decompress(data[18:])
        assert plain.endswith(value.data)
        for bad in (
            framed_value(value.version, plain + b"\xff"),
            framed_value(value.version, zlib.compress(plain + b"\xff"), 5),
        ):
            assert f"(schema {value.version} of registry main)" in str(rule.fault(record(bad, topic="orders")))


def test_rejects_values_without_a_glue_schema_version(tmp_path: Path) -> None:
    (tmp_path / f"{AVRO}.avsc").write_bytes(LONG_RECORD)
    rule = rule_over(tmp_path)

    assert rule.fault(record(framed_value(AVRO, b"\x06abc"))) is None
    for value in (b"", b"\x03", b"\0\0\0\0\1\x06abc", framed_value(AVRO, b"")[:17], framed_value(AVRO, b"\x06abc", 1)):
        assert "names no schema: write it with a serializer of AWS Glue" in str(rule.fault(record(value)))
    assert "which registry main does not have" in str(rule.fault(record(framed_value(UUID(int=9), b"\x06abc"))))


def test_limits_decompression_of_glue_values(tmp_path: Path) -> None:
    (tmp_path / f"{AVRO}.avsc").write_bytes(LONG_RECORD)
    rule = rule_over(tmp_path)
    packed = zlib.compress(b"\x06abc")

    assert rule.fault(record(framed_value(AVRO, packed, 5))) is None
    assert steps_of(rule.fault, record(framed_value(AVRO, packed, 5))) < 100_000
    bomb = record(framed_value(AVRO, zlib.compress(bytes(64 << 20)), 5))
    assert steps_of(rule.fault, bomb) > INLINE_STEPS
    assert rule.known_schema(bomb) is None
    assert "has more than 16777216 bytes when it is decompressed" in str(rule.fault(bomb))
    assert "ends within its zlib stream" in str(rule.fault(record(framed_value(AVRO, packed[:-1], 5))))
    assert "cannot be decompressed as zlib" in str(rule.fault(record(framed_value(AVRO, b"abc", 5))))


def test_unusable_glue_schema_and_missing_folder_raise_errors(tmp_path: Path) -> None:
    (tmp_path / f"{AVRO}.avsc").write_text('{"type": "unknown"}')
    (tmp_path / f"{JSON}.json").write_text("{}")
    (tmp_path / "README.json").write_text("{}")

    with pytest.raises(SchemaError, match=f"schema {AVRO} of registry main cannot be used"):
        rule_over(tmp_path).fault(record(framed_value(AVRO, b"")))
    with pytest.raises(Outage, match="missing: No such file or directory"):
        rule_over(tmp_path / "missing").fault(record(framed_value(AVRO, b"")))
    section = Registry(type="glue", folder=str(tmp_path))
    surveyed = RegistrySurvey("main", section, MetSubjects()).compile_new_schemas(compile_inline)
    assert [each.schema_id for each in surveyed.unusable] == [AVRO]
    assert (surveyed.usable, surveyed.is_complete) == (1, True)
