"""Rules and schemas for which a few bytes take much time. Clients without such rules do not notice it."""

import json
import struct
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro

from tests.bounds import costly_schemas as costly
from tests.bounds.case import MIB, RULES_PROCESS_BYTES, Case, CaseSize
from tests.bounds.frames import sized_produce_request
from tests.registry.schemas_by_id import registry_of
from tests.validation.rules.json.random_json import RandomJson
from tests.wire.batches import ZSTD, Rec, batch

_SCHEMAS = Path(__file__).parent.parent / "schemas"
_CHAIN_FILTERS = "value.filter(i, i > 1).map(i, i * 2).exists(i, i == -1)"
_PLACE_IN_EACH = "value.a.all(i, value.b[0] == 0)"
_KEYS = "value.m.all(k, value.m[k] > 0)"
_ORDERS = "value.orders.filter(o, o.paid).all(o, o.amount > 0)"
_EXPRESSIONS = {"chained": _CHAIN_FILTERS, "places": _PLACE_IN_EACH, "keys": _KEYS, "orders": _ORDERS}
_FIRST_WIDE, _FIRST_PATTERNS, _FIRST_RANDOM = 1000, 2000, 10_000
_TEXTS: dict[int, tuple[str, Callable[[], str]]] = {
    1: ("JSON", lambda: costly.json_schema_with_long_enum(249)),
    2: ("JSON", lambda: costly.json_schema_with_long_enum(5_000)),
    3: ("JSON", lambda: costly.schema_with_variants(50)),
    4: ("AVRO", lambda: costly.avro_chain(28)),
    5: ("AVRO", lambda: costly.avro_chain(32)),
    6: ("JSON", lambda: costly.all_of_chain_schema(20)),
    7: ("JSON", lambda: costly.all_of_chain_schema(24)),
    8: ("JSON", lambda: costly.json_schema_with_patterns(1_500)),
    9: ("PROTOBUF", lambda: costly.proto_with_messages(40_000)),
    10: ("JSON", lambda: json.dumps({"type": "array", "uniqueItems": True})),
    11: ("AVRO", lambda: json.dumps({"type": "array", "items": "null"})),
    12: ("JSON", lambda: costly.json_schema_with_long_enum(1_000)),
    13: ("JSON", lambda: json.dumps({"type": "string", "pattern": "^(?:(?=a)a+)+$"})),
    14: ("JSON", lambda: json.dumps({"items": {"multipleOf": 3}, "uniqueItems": True})),
    15: ("AVRO", (_SCHEMAS / "numbers.avsc").read_text),
    16: ("JSON", lambda: json.dumps({"items": {"confluent:rules": [{"name": "positive", "expr": "this.n > 0"}]}})),
}
_CONDITION = "message.numbers.filter(n, n > 1).map(n, n * 2).exists(n, n == -1)"
_RULE_SETS = {
    15: {"domainRules": [{"name": "c", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": _CONDITION}]}
}


def _text_of(schema_id: int) -> tuple[str, str] | None:
    if schema_id in _TEXTS:
        language, text = _TEXTS[schema_id]
        return language, text()
    if schema_id >= _FIRST_RANDOM:
        return "JSON", json.dumps(RandomJson(schema_id).schema())
    if schema_id >= _FIRST_PATTERNS:
        return "JSON", costly.json_schema_with_patterns(1_500, schema_id)
    return ("JSON", costly.wide_schema(schema_id)) if schema_id >= _FIRST_WIDE else None


_REGISTRY = registry_of(_text_of, _RULE_SETS)
_REGISTERED = {"name": "registered", "value": {"schema": {"registry": "main", "subject": "any"}}}
_REQUIRED = {"schema": {"file": str(_SCHEMAS / "required.proto"), "format": "protobuf", "message": "Many"}}
_NUMBERS = {"schema": {"file": str(_SCHEMAS / "numbers.avsc"), "format": "avro"}}
_NODES = {"schema": {"file": str(_SCHEMAS / "node.proto"), "format": "protobuf", "message": "Node"}}
_OF_AVRO = "value.numbers.filter(n, n > 1).map(n, n * 2).exists(n, n == -1)"
_OF_PROTOBUF = "value.nodes.all(n, value.nodes[0] == n)"
_CONTRACT = json.dumps(
    {
        "type": "object",
        "properties": {
            "numbers": {
                "type": "array",
                "uniqueItems": True,
                "items": {"anyOf": [{"maximum": -1}, {"type": "integer"}]},
            },
            "nodes": {"type": "array", "items": {"required": ["nodes", "texts"], "minProperties": 4}},
        },
    }
)
_SENSITIVE = [{"name": "mail", "action": "mask", "fields": ["mail", "lines.mail", "a.a.mail"]}]
_INLINE = {"registry": "main", "subject": "any", "inline_rules": True}
_CONDITIONS = {"registry": "main", "subject": "any", "conditions": True}


def _with_contract(value: dict[str, dict[str, str]]) -> dict[str, Any]:
    return {"schema": {**value["schema"], "json_schema": _CONTRACT}}


_CONFIG: dict[str, Any] = {
    "topics": [
        *({"match": name, "rules": [{"name": name, "cel": text}]} for name, text in _EXPRESSIONS.items()),
        {"match": "avro", "rules": [{"name": "avro", "value": _NUMBERS, "cel": _OF_AVRO}]},
        {"match": "protobuf", "rules": [{"name": "protobuf", "value": _NODES, "cel": _OF_PROTOBUF}]},
        {"match": "required", "rules": [{"name": "required", "value": _REQUIRED}]},
        {"match": "registered", "rules": [_REGISTERED]},
        {"match": "contract-avro", "rules": [{"name": "contract", "value": _with_contract(_NUMBERS)}]},
        {"match": "contract-protobuf", "rules": [{"name": "contract", "value": _with_contract(_NODES)}]},
        {"match": "conditions", "rules": [{"name": "conditions", "value": {"schema": _CONDITIONS}}]},
        {"match": "inline", "rules": [{"name": "inline", "value": {"schema": _INLINE}}]},
        {"match": "masked", "sensitive": _SENSITIVE},
    ],
    "registries": {"main": {"url": _REGISTRY.url}},
}


def serve_schemas() -> None:
    """Serve the schemas until this process ends."""
    _REGISTRY.__enter__()


def _case(name: str, topic: str, values: Callable[[int, int], list[bytes]], codec: int = ZSTD, **more: Any) -> Case:
    """`values`: (amount, number of the connection) -> the records' values."""

    def pieces_of_sender(amount: int, number: int) -> list[bytes]:
        now = time.time_ns() // 1_000_000
        records = [Rec(now, b"key", value) for value in values(amount, number)]
        return [sized_produce_request(9, {topic.encode(): [(0, batch(records, codec))]})]

    return Case(
        name,
        pieces_of_sender,
        config=_CONFIG,
        beside=RULES_PROCESS_BYTES,
        **{"short": CaseSize(1, 1, 20), "thorough": CaseSize(1, 2, 60), **more},
    )


def _at_random(amount: int, number: int) -> list[bytes]:
    """Return requests of one record each; schema and value are random and unrelated."""
    made, now = RandomJson(number), time.time_ns() // 1_000_000
    requests = []
    for i in range(amount):
        value = _named(_FIRST_RANDOM + number * amount + i // 4, made.text())
        requests.append(
            sized_produce_request(9, {b"registered": [(0, batch([Rec(now, b"key", value)], ZSTD))]}, correlation_id=i)
        )
    return requests


def _named(schema_id: int, value: bytes) -> bytes:
    return struct.pack(">bI", 0, schema_id) + value


def _numbers(count: int) -> bytes:
    return json.dumps(list(range(count)), separators=(",", ":")).encode()


def _longs(count: int) -> bytes:
    """Return an Avro record of tests/bounds/schemas/numbers.avsc."""
    out = BytesIO()
    fastavro.schemaless_writer(
        out, json.loads((_SCHEMAS / "numbers.avsc").read_text()), {"numbers": [5] * count, "texts": {}}
    )
    return out.getvalue()


def _words(size: int) -> bytes:
    return json.dumps(["wrong"] * (size // 8), separators=(",", ":")).encode()


def _objects(size: int) -> bytes:
    return json.dumps([{"kind": "none", "items": [1, 2, 3]}] * (size // 32), separators=(",", ":")).encode()


def _floats(count: int) -> bytes:
    return json.dumps([i / 7 for i in range(count)], separators=(",", ":")).encode()


def _object(**parts: Any) -> bytes:
    return json.dumps(parts, separators=(",", ":")).encode()


def _long_numbers() -> bytes:
    return b"[" + b",".join(b"1e%d" % (1_000 + i) for i in range(60_000)) + b"]"


def _fields_of(field: bytes, count: int) -> bytes:
    return b"{" + b",".join([field] * count) + b"}"


def _lines(count: int) -> bytes:
    return b'{"lines":[' + b",".join([b'{"mail":"a@b"}'] * count) + b"]}"


_MANY_A = b'"' + b"a" * 60 + b'b"'
_NODE = b"\x0a\0"
_NULLS = b"\x90\x4e\x00"  # 5,000 items in one block

RULES = [
    _case(f"CEL {_CHAIN_FILTERS}: 9,000 numbers", "chained", lambda *_: [_numbers(9_000)]),
    _case(f"CEL {_PLACE_IN_EACH}: 9,000 and 9,000", "places", lambda *_: [_object(a=[0] * 9_000, b=[0] * 9_000)]),
    _case(f"CEL {_KEYS}: 4,000 keys", "keys", lambda *_: [_object(m={str(i): 1 for i in range(4_000)})]),
    _case(f"CEL {_ORDERS}: 1,500 orders", "orders", lambda *_: [_object(orders=[{"paid": True, "amount": 1}] * 1_500)]),
    _case(f"CEL {_OF_AVRO}: Avro, 9,000 and 2 million", "avro", lambda *_: [_longs(9_000), _longs(2_000_000)]),
    _case(
        f"CEL {_OF_PROTOBUF}: 9,000 and 260,000 messages",
        "protobuf",
        lambda *_: [b"\x0a\0" * 9_000, b"\x0a\0" * 260_000],
    ),
    _case(
        "a contract over Avro: 9,000 and 2 million numbers",
        "contract-avro",
        lambda *_: [_longs(9_000), _longs(2_000_000)],
    ),
    _case(
        "a contract over Protobuf: 9,000 and 260,000 messages",
        "contract-protobuf",
        lambda *_: [_NODE * 9_000, _NODE * 260_000],
    ),
    _case(
        f"a registry's condition {_CONDITION}: Avro, 9,000 and 2 million",
        "conditions",
        lambda *_: [_named(15, _longs(9_000)), _named(15, _longs(2_000_000))],
    ),
    _case(
        "rules inside a schema: JSON, 2,000 and 100,000 objects",
        "inline",
        lambda *_: [_named(16, b"[" + b'{"n":1},' * (count - 1) + b'{"n":1}]') for count in (2_000, 100_000)],
    ),
    _case("a masked field, 300,000 times in an object", "masked", lambda *_: [_fields_of(b'"mail":"a@b"', 300_000)]),
    _case("a masked field in 300,000 lines", "masked", lambda *_: [_lines(300_000)]),
    _case("a masked field below 100,000 levels", "masked", lambda *_: [b'{"a":' * 100_000 + b"1" + b"}" * 100_000]),
    _case("required fields: 2 records of 260,000 messages", "required", lambda *_: [b"\x0a\x00" * 260_000] * 2),
    _case("a JSON Schema of 249 words: 50 records of 20 kB", "registered", lambda *_: [_named(1, _words(20_000))] * 50),
    _case("a JSON Schema of 5,000 words: 20 kB", "registered", lambda *_: [_named(2, _words(20_000))]),
    _case(
        "a JSON Schema of 1,000 words: 640 kB on two connections",
        "registered",
        lambda *_: [_named(12, _words(640_000))],
        short=CaseSize(1, 2, 20),
    ),
    _case("a look-ahead that backtracks: 50 records", "registered", lambda *_: [_named(13, _MANY_A)] * 50),
    _case(
        "multiples of 60,000 numbers with exponents from 1,000", "registered", lambda *_: [_named(14, _long_numbers())]
    ),
    _case("a JSON Schema with oneOf of 50", "registered", lambda *_: [_named(3, _objects(20_000))] * 20),
    _case("Avro, a record that holds the next twice: 28 deep", "registered", lambda *_: [_named(4, b"")], long=True),
    _case("Avro, a record that holds the next twice: 32 deep", "registered", lambda *_: [_named(5, b"")]),
    _case("a JSON Schema with allOf twice the next: 20 deep", "registered", lambda *_: [_named(6, b"1")]),
    _case("a JSON Schema with allOf twice the next: 24 deep", "registered", lambda *_: [_named(7, b"1")]),
    _case("a JSON Schema with 1,500 patterns", "registered", lambda *_: [_named(8, b"{}")]),
    _case("Protobuf with 40,000 messages", "registered", lambda *_: [_named(9, b"\x00")], long=True),
    _case("uniqueItems over 60,000 floats", "registered", lambda *_: [_named(10, _floats(60_000))], held=4 * MIB),
    _case("Avro's arrays of 5,000 nulls", "registered", lambda *_: [_named(11, _NULLS)] * 12_000, held=MIB),
    _case(
        "150 ids of JSON Schemas of 241 kB",
        "registered",
        lambda amount, number: [_named(_FIRST_WIDE + number * amount + i, b"{}") for i in range(amount)],
        short=CaseSize(20, 1, 30),
        thorough=CaseSize(150, 1, 90),
        long=True,
    ),
    _case(
        "ids of JSON Schemas of 1,500 patterns, each slow to compile",
        "registered",
        lambda amount, number: [_named(_FIRST_PATTERNS + number * amount + i, b"{}") for i in range(amount)],
        short=CaseSize(2, 2, 30),
        thorough=CaseSize(10, 4, 90),
        long=True,
    ),
    Case(
        "random values against random JSON Schemas of a registry",
        _at_random,
        CaseSize(40, 2, 30),
        CaseSize(500, 4, 90),
        held=MIB,
        config=_CONFIG,
        beside=RULES_PROCESS_BYTES,
    ),
]
