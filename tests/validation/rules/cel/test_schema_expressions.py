"""Expressions are evaluated on Avro and Protobuf values, which fastavro and Google's protobuf wrote."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro
import pytest
from fastavro.utils import generate_many
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from sluicegate.proxy.registry.http import JsonResponse
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from sluicegate.validation.rules.avro.cel_values import AvroValues
from sluicegate.validation.rules.avro.plan import plan_of
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.cel.runtime import ExpressionUnusable
from sluicegate.validation.rules.cel.variables import NotOfSchema
from sluicegate.validation.rules.protobuf.indexed_schema import indexed_protobuf_content
from sluicegate.validation.rules.protobuf.schema import protobuf_content
from sluicegate.validation.rules.rule import SchemaError, Side
from sluicegate.validation.rules.schemas.content import HasExpressions
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema, SubjectName
from sluicegate.validation.rules.schemas.schema_expression import TrueOfSchema
from tests.registry.test_schema_registry import ScriptedRegistry
from tests.validation.rules.avro.test_schema import ORDER
from tests.validation.rules.records import record

_LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}, {"name": "n", "type": "int"}]}
_MILLIS, _MICROS = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
SALE: dict[str, Any] = {
    "type": "record",
    "name": "com.example.Sale",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "at", "type": _MILLIS},
        {"name": "paid_at", "type": ["null", _MICROS]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "email", "type": ["null", "string"]},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}},
        {"name": "lines", "type": {"type": "array", "items": _LINE}},
        {"name": "first", "type": ["null", "Line"]},
        {"name": "sizes", "type": {"type": "map", "values": "long"}},
        {"name": "either", "type": ["string", "long"]},
        {"name": "raw", "type": "bytes"},
    ],
}
_SALE = {
    "id": UUID("12345678-1234-5678-1234-567812345678"),
    "at": datetime(2026, 11, 27, 12, 0, 0, 250_000, UTC),
    "paid_at": None,
    "day": date(2026, 11, 27),
    "price": Decimal("129.95"),
    "email": "a\0b@example.com",
    "state": "SENT",
    "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}],
    "first": None,
    "sizes": {"s": 3, "m": 4},
    "either": 7,
    "raw": b"\0\1",
}
PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Sale {
  string id = 1;
  double amount = 2;
  repeated Line lines = 3;
  map<string, int64> sizes = 4;
  google.protobuf.Timestamp at = 5;
  google.protobuf.StringValue email = 6;
  State state = 7;
  optional int32 rank = 8;
  oneof how { string card = 9; uint64 voucher = 10; }
  message Line { string sku = 1; int32 n = 2; }
}
enum State { NEW = 0; SENT = 1; }
"""
_DESCRIPTORS = descriptor_set_of("shop.proto", PROTO, {})


def avro_data(schema: dict[str, Any], value: Any) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def protobuf_message() -> bytes:
    files = descriptor_pb2.FileDescriptorSet.FromString(_DESCRIPTORS)
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    sale = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Sale"))()
    sale.id, sale.amount, sale.state, sale.card = "a\0b", 12.5, 1, "4111"
    sale.lines.add(sku="x", n=2)
    sale.sizes["m"] = 4
    sale.at.FromDatetime(datetime(2026, 11, 27, tzinfo=UTC))
    encoded: bytes = sale.SerializeToString()
    return encoded


def test_cel_avro_values_equal_those_read_by_fastavro() -> None:
    values = AvroValues(plan_of(ORDER))
    values.compiled("value != null")

    for order in generate_many(ORDER, 300):
        data = avro_data(ORDER, order)
        assert values.read(data) == fastavro.schemaless_reader(BytesIO(data), ORDER)
        with pytest.raises(NotOfSchema):
            values.read(data[: len(data) // 2])


@pytest.mark.parametrize(
    "expression",
    [
        "value.id == '12345678-1234-5678-1234-567812345678'",
        "value.at == timestamp('2026-11-27T12:00:00.25Z') && value.at.getHours() == 12",
        "value.paid_at == null && value.first == null",
        "value.day == 20784 && value.price == 129.95",
        "value.email.endsWith('@example.com') && value.email.size() == 15",
        "value.state in ['NEW', 'SENT'] && value.either == 7",
        "value.lines.all(line, line.n > 0 && line.sku != '') && value.lines[1].sku == 'b'",
        "value.sizes['m'] == 4 && !('x' in value.sizes) && value.raw == b'\\x00\\x01'",
        "type(value) == map && key == 'k' && topic == 'orders'",
    ],
)
def test_cel_expression_reads_avro_values_by_schema(expression: str) -> None:
    rule = avro_content(json.dumps(SALE)).expression(expression)

    assert rule.fault(record(avro_data(SALE, _SALE), b"k")) is None


@pytest.mark.parametrize(
    "expression",
    [
        "value.id == 'a\\x00b' && value.amount > 12.0",
        "value.lines.exists(line, line.n == 2 && line.sku == 'x') && value.sizes['m'] == 4",
        "value.at == timestamp('2026-11-27T00:00:00Z') && value.email == null && !has(value.rank)",
        "value.state == shop.State.SENT && has(value.card) && !has(value.voucher) && value.rank == 0",
        "type(value) == shop.Sale && value.lines[0] == shop.Sale.Line{sku: 'x', n: 2}",
    ],
)
def test_cel_expression_reads_protobuf_values_by_schema(expression: str) -> None:
    for content, prefix in (
        (protobuf_content(_DESCRIPTORS, "shop.Sale"), b""),
        (indexed_protobuf_content(_DESCRIPTORS), b"\0"),
    ):
        assert isinstance(content, HasExpressions)
        assert content.expression(expression).fault(record(prefix + protobuf_message())) is None


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("value.amuont > 1.0", "line 1, column 6: undefined field 'amuont' not found in struct '{}Sale'"),
        ("value.lines.all(l, l.amount > 1)", "undefined field 'amount' not found in struct '{}Line'"),
        ("value.id > 1", "no matching overload for '_>_' applied to '(string, int)'"),
        ("value.id", "the expression returns string instead of true or false"),
    ],
)
def test_cel_expression_on_a_missing_schema_field_is_rejected_on_load(expression: str, why: str) -> None:
    for content, package in (
        (avro_content(json.dumps(SALE)), ""),
        (protobuf_content(_DESCRIPTORS, "shop.Sale"), "shop."),
    ):
        with pytest.raises(ExpressionUnusable) as raised:
            content.expression(expression)
        nested = "shop.Sale." if package and "Line" in why else package
        assert why.format(nested) in str(raised.value)


def _rule(expression: str) -> TrueOfSchema:
    http = ScriptedRegistry()
    for schema_id, language, text in ((1, "AVRO", json.dumps(SALE)), (2, "PROTOBUF", PROTO), (3, "JSON", "{}")):
        http.answers[f"/schemas/ids/{schema_id}"] = JsonResponse(200, {"schemaType": language, "schema": text})
    schemas = SchemaRegistry("main", http, 60, 30)
    return TrueOfSchema(expression, HasRegisteredSchema(Side.VALUE, schemas, None, SubjectName.ANY))


def test_schema_id_selects_the_cel_type_of_a_record() -> None:
    avro_value, protobuf_value = avro_data(SALE, _SALE), b"\0" + protobuf_message()
    rule = _rule("value.lines.size() > 1")

    assert rule.fault(record(b"\0\0\0\0\1" + avro_value)) is None
    assert rule.fault(record(avro_value, headers=((b"__value_schema_id", b"\0\0\0\0\1"),))) is None
    assert rule.fault(record(b"\0\0\0\0\2" + protobuf_value)) == "not true of the record: value.lines.size() > 1"
    assert rule.fault(record(b'\0\0\0\0\3{"lines": [1, 2]}')) is None
    # The rule about the schema reports these.
    for other in (None, b"", b"\0\0\0\0\1\1", b"\0\0\0\0\2", b"\0\0\0\0\7"):
        assert rule.fault(record(other)) is None


def test_expression_that_does_not_fit_a_schema_raises_a_schema_error() -> None:
    for schema_id, data in ((1, avro_data(SALE, _SALE)), (2, b"\0" + protobuf_message())):
        with pytest.raises(SchemaError, match=rf"schema {schema_id} of registry main .*undefined field 'total'.*Sale'"):
            _rule("value.total > 1").fault(record(bytes((0, 0, 0, 0, schema_id)) + data))
