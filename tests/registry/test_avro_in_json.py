"""Avro in JSON encoding, as Apicurio's own serializer writes it, is validated like binary data."""

import json
import random
from io import BytesIO
from time import time_ns
from typing import Any

import fastavro
import pytest

from sluicegate.proxy.registry.confluent_api import SchemaText
from sluicegate.proxy.registry.schema_compiler import RulesProcessCompiler
from sluicegate.proxy.rules_process.rule_limits import RuleLimits
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.validation.rules.avro.json_encoding import JsonEncoding, NotInJsonEncoding
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.rule import INLINE_STEPS, Header, Side, StepBudget
from sluicegate.validation.rules.schemas.content import HasJsonEncoding, SchemaLanguage
from sluicegate.validation.rules.schemas.rules_inside_schemas import MeetsRulesInside
from sluicegate.validation.rules.schemas.schema_expression import TrueOfSchema
from tests.oracle.java_serializers import apicurio_avro
from tests.registry.apicurio import Apicurio
from tests.registry.test_apicurio_native import native_url, rule_for
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "count", "type": "int", "confluent:rules": [{"name": "low", "expr": "this < 1000"}]},
        {"name": "total", "type": "long"},
        {"name": "price", "type": "double"},
        {"name": "weight", "type": "float"},
        {"name": "paid", "type": "boolean"},
        {"name": "raw", "type": "bytes"},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}},
        {"name": "note", "type": ["null", "string", "Hash", "long"]},
        {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": ["null", LINE]}}},
        {"name": "nothing", "type": "null"},
    ],
}
TEXT = json.dumps(SCHEMA)


def _order(made: random.Random) -> dict[str, Any]:
    lines = [{f"k{n}": {"sku": "a"} if made.random() < 0.5 else None} for n in range(made.randrange(3))]
    return {
        "id": made.choice(["", "ä€😀", 'a"b\\']),
        "count": made.choice([0, -1, 2**31 - 1, -(2**31)]),
        "total": made.choice([0, 2**63 - 1, -(2**63)]),
        "price": made.choice([0.1, -1e300, float("nan"), float("inf"), 5e-324]),
        "weight": made.choice([0.5, float("-inf"), 1.5e-45, 3.0e38]),
        "paid": made.random() < 0.5,
        "raw": made.choice([b"", b"\xff\0a", bytes(range(256))]),
        "hash": made.choice([b"\0\0", b"\xff\xfe"]),
        "state": made.choice(["NEW", "SENT"]),
        "note": made.choice([None, "text", b"ab", 7]),
        "lines": lines,
        "nothing": None,
    }


def _binary(order: dict[str, Any]) -> bytes:
    written = BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(dict(SCHEMA)), order)
    return written.getvalue()


def _written(
    apicurio: Apicurio, topic: str, data: list[bytes], encoding: str
) -> list[tuple[bytes, tuple[Header, ...]]]:
    return apicurio_avro(native_url(apicurio), topic, TEXT, data, encoding)


def test_apicurio_json_encoded_avro_converts_to_the_binary_datum(apicurio: Apicurio) -> None:
    made = random.Random(7)
    data = [_binary(_order(made)) for _ in range(200)]
    rule = rule_for(apicurio)

    written = _written(apicurio, "json-orders", data, "JSON")

    encoding = JsonEncoding(avro_content(TEXT).plan)
    for datum, (value, headers) in zip(data, written, strict=True):
        assert (b"apicurio.value.encoding", b"JSON") in headers
        assert encoding.binary(value, StepBudget()) == datum
        assert rule.fault(record(value, topic="json-orders", headers=headers)) is None


def test_avro_with_json_encoding_header_is_read_as_binary_if_it_is_binary(apicurio: Apicurio) -> None:
    ((value, headers),) = _written(apicurio, "binary-orders", [_binary(_order(random.Random(1)))], "BINARY")

    assert (b"apicurio.value.encoding", b"BINARY") in headers
    assert rule_for(apicurio).fault(record(value, topic="binary-orders", headers=headers)) is None


def _headers_of(apicurio: Apicurio, topic: str) -> tuple[Header, ...]:
    return _written(apicurio, topic, [_binary(_order(random.Random(1)))], "JSON")[0][1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"count": 2**31}, "Order.count must be a whole number of 32 bits"),
        ({"count": "1"}, "Order.count must be a whole number of 32 bits"),
        ({"paid": 1}, "Order.paid must be true or false"),
        ({"raw": "€"}, "Order.raw must be a string of characters up to 255"),
        ({"hash": "abc"}, "Order.hash must be a string of 2 characters up to 255"),
        ({"state": "LOST"}, "Order.state must be a symbol of the enum"),
        ({"note": "text"}, "Order.note must be null, or an object with the name of one branch"),
        ({"note": {"Hash": "ab"}}, "Order.note must be null, or an object with the name of one branch"),
        ({"price": "0.1"}, "Order.price must be a number"),
        ({"lines": {}}, "Order.lines must be a list"),
        ({"more": 1}, "must be an object with exactly the record's fields"),
        ({"nothing": 0}, "Order.nothing must be null"),
    ],
)
def test_rejects_invalid_json_encoded_avro_with_its_location(
    apicurio: Apicurio, change: dict[str, Any], words: str
) -> None:
    good = {
        "id": "a", "count": 1, "total": 1, "price": 1, "weight": "NaN", "paid": True, "raw": "ÿ", "hash": "ab",
        "state": "NEW", "note": {"shop.Hash": "ab"}, "lines": [{"k": None}], "nothing": None,
    }  # fmt: skip
    headers, rule = _headers_of(apicurio, "bad-orders"), rule_for(apicurio)

    assert rule.fault(record(json.dumps(good).encode(), topic="bad-orders", headers=headers)) is None
    fault = str(rule.fault(record(json.dumps(good | change).encode(), topic="bad-orders", headers=headers)))
    assert words in fault
    assert "does not match its Avro schema in JSON encoding" in fault
    not_json = str(rule.fault(record(b"\x02a", topic="bad-orders", headers=headers)))
    assert "is not JSON, although the header apicurio.value.encoding declares it" in not_json


def test_expressions_and_schema_rules_evaluate_json_encoded_avro(apicurio: Apicurio) -> None:
    order = _order(random.Random(3)) | {"count": 1000, "lines": []}
    ((value, headers),) = _written(apicurio, "ruled", [_binary(order)], "JSON")
    given = record(value, topic="ruled", headers=headers)
    rule = rule_for(apicurio)

    assert TrueOfSchema("value.count == 1000", rule).fault(given) is None
    assert TrueOfSchema("value.count == 1", rule).fault(given) is not None
    assert "the field count does not meet the rule low" in str(MeetsRulesInside(rule, Side.VALUE, time_ns).fault(given))


def test_json_encoded_avro_costs_steps_by_size_and_is_limited_in_depth() -> None:
    content = avro_content('{"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}')
    deep = b'{"r":{"R":' * 200 + b'{"r":null}' + b"}}" * 200

    assert steps_of(content.json_encoded().fault, b"[" + b"1," * 20_000 + b"1]") > INLINE_STEPS
    with pytest.raises(NotInJsonEncoding, match="nested at most 100 levels deep"):
        JsonEncoding(content.plan).binary(deep, StepBudget())


def test_rules_process_validates_costly_json_encoded_avro() -> None:
    text = SchemaText(SchemaLanguage.AVRO, '{"type": "array", "items": "long"}', ())
    process = RulesProcess(RuleLimits(5.0, 256 << 20), WaitBudget())
    numbers = list(range(20_000))
    try:
        content = RulesProcessCompiler(process)(text).content
        assert isinstance(content, HasJsonEncoding)
        encoded = content.json_encoded()
        for good in (numbers[:10], numbers):
            assert encoded.fault(json.dumps(good).encode(), StepBudget()) is None
            words = str(encoded.fault(json.dumps([*good, "x"]).encode(), StepBudget()))
            assert "must be a whole number of 64 bits" in words
        assert content.json_encoded() is encoded
    finally:
        process.close()
