"""Measures the cost of calling a rule with a value of 1 KiB: CPU per MB of values and per record, without the wire.

    .venv/bin/python -m bench.rules

Writes bench/results/rules.json and a table in bench/results/parts.md. bench/live_rules.py measures the cost of a whole
proxy.
"""

import json
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from time import process_time
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, message_factory

from bench.figures import PARTS, fill_in
from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.cel.rule import IsTrue
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.json.syntax import JsonSyntax
from sluicegate.validation.rules.native.contents import OrdinaryContents
from sluicegate.validation.rules.native.questions import ordinary_questions
from sluicegate.validation.rules.protobuf.schema import protobuf_content
from sluicegate.validation.rules.rule import Client, RecordRule, RuledRecord, Side
from sluicegate.validation.rules.schemas.schema_constraints import MeetsConstraints
from sluicegate.validation.rules.schemas.schema_expression import TrueOfSchema, json_schema_of
from sluicegate.validation.rules.schemas.schema_file import FollowsSchema
from tests.wire.batches import Rec
from tests.wire.batches import record as written_record

RESULTS = Path(__file__).with_name("results") / "rules.json"
_RECORDS, _ROUNDS, _BATCH = 1984, 15, 64
_TEXT = "order confirmed; shipped with the next truck. Please ring twice, and leave it at the back door if nobody opens"
_WORDS = _TEXT.split()
JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": "string", "maxLength": 20},
        "amount": {"type": "number", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}},
        "address": {"type": "object", "required": ["zip"], "properties": {"zip": {"type": "string"}}},
        "note": {"type": "string"},
    },
    "required": ["id", "amount"],
}
_ADDRESS_FIELDS = [{"name": name, "type": "string"} for name in ("street", "zip", "city")]
_ADDRESS = {"type": "record", "name": "Address", "fields": _ADDRESS_FIELDS}
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "address", "type": _ADDRESS},
        {"name": "note", "type": ["null", "string"]},
    ],
}


_PROTOBUF = descriptor_set_of(
    "order.proto",
    """syntax = "proto3";
    message Order {
      int64 id = 1; string customer = 2; double amount = 3; repeated string tags = 4;
      Address address = 5; string note = 6;
    }
    message Address { string street = 1; string zip = 2; string city = 3; }""",
    {},
)
_CONSTRAINED = descriptor_set_of(
    "order.proto",
    """syntax = "proto3";
    import "buf/validate/validate.proto";
    message Order {
      int64 id = 1;
      string customer = 2 [(buf.validate.field).string.max_len = 20];
      double amount = 3 [(buf.validate.field).double.gte = 0];
      repeated string tags = 4;
      Address address = 5 [(buf.validate.field).required = true];
      string note = 6;
    }
    message Address { string street = 1; string zip = 2 [(buf.validate.field).string.min_len = 1]; string city = 3; }
    """,
    {},
)
_EXPRESSION = "value.amount > 0.0 && value.tags.size() < 20"


def protobuf_order(number: int) -> bytes:
    """Return the same order in Protobuf."""
    described = descriptor_pb2.FileDescriptorSet.FromString(_PROTOBUF)
    kinds = message_factory.GetMessages(described.file)
    written: bytes = kinds["Order"](**order_record(number)).SerializeToString()
    return written


def order_record(number: int) -> dict[str, Any]:
    """Return an order of 1 KiB, most of which is text."""
    return {
        "id": 4000 + number,
        "customer": f"c-{number * 37 % 10_000:04}",
        "amount": 129.95 + number,
        "tags": ["new", "eu", "gift"] * 3,
        "address": {"street": f"Main Street {number}", "zip": f"{number * 7919 % 100_000:05}", "city": "Springfield"},
        "note": " ".join(_WORDS[(number * i + i * i // 3) % len(_WORDS)] for i in range(200))[:780],
    }


def measured(rule: RecordRule, value: bytes) -> float:
    """Return ms of CPU per MB: the minimum of several rounds, because other load can only increase it."""
    record = RuledRecord("orders", 0, 0, 0, None, value, (), Client("127.0.0.1"))
    assert rule.fault(record) is None
    return _least(lambda: rule.fault(record), _RECORDS, len(value))


def native_seconds(rule: RecordRule, value: bytes) -> float:
    """Return the same in seconds for a batch on the fast path."""
    questions = ordinary_questions([rule])
    assert questions is not None
    asked = OrdinaryContents(questions, 1 << 20)
    records = b"".join(written_record(Rec(i, b"key", value), i, 0) for i in range(_BATCH))
    assert asked.accepts(records, _BATCH)
    return _least(lambda: asked.accepts(records, _BATCH), _RECORDS // _BATCH, len(value) * _BATCH)


def _least(ask: Callable[[], object], times: int, size: int) -> float:
    return min(_round(ask, times) for _ in range(_ROUNDS)) * 1000 / (size * times / 1e6)


def _round(ask: Callable[[], object], times: int) -> float:
    begin = process_time()
    for _ in range(times):
        ask()
    return process_time() - begin


def _as_json(schemas: FollowsSchema) -> RecordRule:
    return TrueOfSchema(json.dumps(JSON_SCHEMA), schemas, json_schema_of)


def main() -> None:
    """Measure the rules and write the results."""
    text = json.dumps(order_record(711), separators=(",", ":")).encode()
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO), order_record(711))
    of_schema = FollowsSchema(Side.VALUE, json_schema_content(json.dumps(JSON_SCHEMA)))
    of_avro = FollowsSchema(Side.VALUE, avro_content(json.dumps(AVRO)))
    of_protobuf = FollowsSchema(Side.VALUE, protobuf_content(_PROTOBUF, "Order"))
    # Values that the native code does not handle are validated through Python objects.
    unusual = FollowsSchema(Side.VALUE, json_schema_content(json.dumps({**JSON_SCHEMA, "minProperties": 1})))
    of_constrained = FollowsSchema(Side.VALUE, protobuf_content(_CONSTRAINED, "Order"))
    avro, protobuf = out.getvalue(), protobuf_order(711)
    asked: list[tuple[str, Callable[[RecordRule, bytes], float], RecordRule, bytes]] = [
        ("JSON, plainly good", native_seconds, JsonSyntax(Side.VALUE), text),
        ("JSON", measured, JsonSyntax(Side.VALUE), text),
        ("JSON, duplicate keys rejected", measured, JsonSyntax(Side.VALUE, "reject"), text),
        ("JSON Schema, plainly good", native_seconds, of_schema, text),
        ("JSON Schema", measured, of_schema, text),
        ("JSON Schema with an unusual keyword", measured, unusual, text),
        ("Avro, plainly good", native_seconds, of_avro, avro),
        ("Avro", measured, of_avro, avro),
        ("Protobuf", measured, of_protobuf, protobuf),
        (f"CEL over JSON: {_EXPRESSION}", measured, IsTrue(_EXPRESSION), text),
        (f"CEL over Avro: {_EXPRESSION}", measured, TrueOfSchema(_EXPRESSION, of_avro), avro),
        (f"CEL over Protobuf: {_EXPRESSION}", measured, TrueOfSchema(_EXPRESSION, of_protobuf), protobuf),
        ("a contract's JSON Schema over Avro", measured, _as_json(of_avro), avro),
        ("a contract's JSON Schema over Protobuf", measured, _as_json(of_protobuf), protobuf),
        ("protovalidate: four constraints", measured, MeetsConstraints(of_constrained, Side.VALUE), protobuf),
    ]
    found = {name: (measure(rule, value), len(value)) for name, measure, rule, value in asked}
    rows = [f"| {name} | {ms:.2f} | {ms * size / 1000:.1f} |" for name, (ms, size) in found.items()]
    lines = ["| rule | ms/MB | µs/record |", "| --- | --- | --- |", *rows]
    day = time.strftime("%Y-%m-%d", time.gmtime())
    table = f"The least of {_ROUNDS} rounds, {day}.\n\n" + "\n".join(lines)
    print(table)
    RESULTS.parent.mkdir(exist_ok=True)
    figures = {name: {"ms_per_mb": ms, "value_bytes": size} for name, (ms, size) in found.items()}
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    fill_in(PARTS, "rules", table)


if __name__ == "__main__":
    main()
