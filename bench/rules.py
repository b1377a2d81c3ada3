"""What asking a rule about a value of one KiB costs: ms of CPU for each MB of values, the rule alone, without the wire.

    .venv/bin/python -m bench.rules

Writes bench/results/rules.json. `make bench` has what the whole proxy costs.
"""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from time import process_time

import fastavro

from sluicegate.validation.rules.avro_schema import avro_content
from sluicegate.validation.rules.json_schema import json_schema_content
from sluicegate.validation.rules.json_syntax import DuplicateKeys, JsonSyntax
from sluicegate.validation.rules.rule import Client, Rule, RuledRecord
from sluicegate.validation.rules.schema_file import FollowsSchema
from sluicegate.validation.rules.side import Side

RESULTS = Path(__file__).with_name("results") / "rules.json"
_RECORDS, _ROUNDS = 2000, 15
_TEXT = "order confirmed; shipped with the next truck. "
_ORDER = {
    "id": 4711,
    "customer": "c-0815",
    "amount": 129.95,
    "tags": ["new", "eu", "gift"] * 3,
    "address": {"street": "Main Street 1", "zip": "12345", "city": "Springfield"},
    "note": _TEXT * 17,
}
_JSON_SCHEMA = {
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
_AVRO = {
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


def measured(rule: Rule, value: bytes) -> float:
    """Ms of CPU for each MB: the least of some rounds, as others' load only adds."""
    record = RuledRecord("orders", 0, 0, 0, None, value, (), Client("127.0.0.1"))
    assert rule.complaint(record) is None
    return min(_round(rule.complaint, record) for _ in range(_ROUNDS)) * 1000 / (len(value) * _RECORDS / 1e6)


def _round(ask: Callable[[RuledRecord], str | None], record: RuledRecord) -> float:
    begin = process_time()
    for _ in range(_RECORDS):
        ask(record)
    return process_time() - begin


def main() -> None:
    """Measure and write down."""
    text = json.dumps(_ORDER, separators=(",", ":")).encode()
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(_AVRO), _ORDER)
    found = {
        "json": measured(JsonSyntax(Side.VALUE), text),
        "json, duplicate keys refused": measured(JsonSyntax(Side.VALUE, DuplicateKeys.REFUSE), text),
        "json schema": measured(FollowsSchema(Side.VALUE, json_schema_content(json.dumps(_JSON_SCHEMA))), text),
        "avro": measured(FollowsSchema(Side.VALUE, avro_content(json.dumps(_AVRO))), out.getvalue()),
    }
    for name, ms in found.items():
        print(f"{name:<30} {ms:.2f} ms/MB")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"value_bytes": len(text), "ms_per_mb": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
