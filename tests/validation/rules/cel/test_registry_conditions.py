"""The conditions in a registry's rule set decide like Confluent's own serializers on the same values."""

import json
from collections.abc import Callable
from functools import cache
from time import time_ns
from typing import Any, cast

import pytest

from sluicegate.proxy.registry.http import JsonResponse
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.validation.rules.rule import SchemaError, Side
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema, SubjectName
from sluicegate.validation.rules.schemas.registry_conditions import MeetsConditions
from sluicegate.validation.rules.schemas.rule_sets import write_rules_in
from tests.registry.test_schema_registry import ScriptedRegistry
from tests.validation.rules.records import record

pytest.importorskip("celpy", reason="cel-python is not installed: pip install 'confluent-kafka[rules]'")

from confluent_kafka.schema_registry import Rule, RuleKind, RuleMode, RuleSet, Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

CelExecutor.register()
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "amount", "type": "double"},
            {"name": "count", "type": "long"},
            {"name": "email", "type": ["null", "string"]},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "sizes", "type": {"type": "map", "values": "int"}},
        ],
    }
)
JSON = json.dumps({"type": "object", "title": "Order"})
EXPRESSIONS = [
    "message.amount > 0.0",
    "message.count in [1, 2, 3] && message.id.startsWith('o-')",
    "message.email == null || message.email.matches('^[^@]+@[^@]+$')",
    "message.email != null ; message.email.endsWith('.org')",
    "message.count > 2; size(message.tags) > 0",
    "; message.count > 2",
    "message.tags.all(tag, tag.size() == 2) && !('xl' in message.sizes)",
    "has(message.email) && size(message.id) > 2",
    "message.total > 0",
    "message.sizes['s'] == 3",
    "message.tags.exists_one(tag, tag == 'eu')",
    "message.amount * 2.0 < 100.0 ? message.count < 5 : true",
    "now > timestamp('2020-01-01T00:00:00Z')",
    "now < timestamp('2020-01-01T00:00:00Z')",
    "timestamp(message.count) < now ; message.count > 2",
    "message.id",
    "message.count > 2 ? message.email : message.id",
    "size(message.tags)",
    "message.amount",
    "message.sizes",
]
ORDERS: list[dict[str, Any]] = [
    {"id": "o-1", "amount": 5.5, "count": 3, "email": None, "tags": ["eu"], "sizes": {"s": 3}},
    {"id": "x", "amount": -1.0, "count": 0, "email": "a@example.org", "tags": [], "sizes": {}},
    {"id": "o-22", "amount": 60.0, "count": 7, "email": "nobody", "tags": ["eu", "eu"], "sizes": {"xl": 1}},
    {"id": "", "amount": 0.0, "count": -(2**63), "email": "@", "tags": ["long"], "sizes": {"s": 4}},
]


def _rule_set(*rules: Rule, encoding: tuple[Rule, ...] = ()) -> RuleSet:
    return RuleSet(migration_rules=None, domain_rules=list(rules), encoding_rules=list(encoding))


def _condition(text: str, **more: Any) -> Rule:
    given = {"mode": RuleMode.WRITE, "kind": RuleKind.CONDITION, "type": "CEL", "on_failure": None, "disabled": None}
    given |= {"expr": text}
    return Rule(name="c", doc=None, tags=None, params=None, on_success=None, **(given | more))


@cache
def _serializer(
    language: str, condition: Rule | None, is_about_bytes: bool = False
) -> Callable[[dict[str, Any], SerializationContext], bytes]:
    """Return a serializer of orders; a registry's client takes ten times as long as what it writes."""
    text = AVRO if language == "AVRO" else JSON
    make = AvroSerializer if language == "AVRO" else JSONSerializer
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    rules = None if condition is None else _rule_set(condition)
    if condition is not None and is_about_bytes:
        rules = _rule_set(encoding=(condition,))
    client.register_schema("orders-value", Schema(text, language, [], None, rules))
    made = make(client, text, conf=conf) if language == "AVRO" else make(text, client, conf=conf)
    return cast("Callable[[dict[str, Any], SerializationContext], bytes]", made)


def _serialized(language: str, rule: Rule, order: dict[str, Any], is_about_bytes: bool = False) -> tuple[bytes, bool]:
    """Return what a serializer writes without the rule, and whether it writes with the rule."""
    context = SerializationContext("orders", MessageField.VALUE)
    data = _serializer(language, None)(order, context)
    try:
        _serializer(language, rule, is_about_bytes)(order, context)
    except SerializationError:
        return data, False
    return data, True


def _rule(language: str, rules: RuleSet) -> MeetsConditions:
    http = ScriptedRegistry()
    body = {"schemaType": language, "schema": AVRO if language == "AVRO" else JSON, "ruleSet": rules.to_dict()}
    http.answers["/schemas/ids/1"] = JsonResponse(200, json.loads(json.dumps(body)))
    schemas = HasRegisteredSchema(Side.VALUE, SchemaRegistry("main", http, 60, 30), None, SubjectName.ANY)
    return MeetsConditions(schemas, Side.VALUE, time_ns)


@pytest.mark.parametrize("language", ["AVRO", "JSON"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_condition_agrees_with_confluents_serializer(language: str, expression: str) -> None:
    rule = _rule(language, _rule_set(_condition(expression)))

    condition = _condition(expression)

    for order in ORDERS:
        data, is_written = _serialized(language, condition, order)
        words = rule.fault(record(b"\0\0\0\0\1" + data[5:]))
        assert (words is None) == is_written, (order, words)
        assert words is None or "the value does not meet the condition c of schema 1 of registry main" in words


@pytest.mark.parametrize("language", ["AVRO", "JSON"])
@pytest.mark.parametrize(
    "expression",
    [
        "size(message) < 40",
        "size(message) > 100; size(message) < 105",
        "message == b''",
        "message.id == ''",
        "now < timestamp(0)",
    ],
)
def test_a_condition_on_serialized_bytes_agrees_with_confluents_serializer(language: str, expression: str) -> None:
    condition = _condition(expression)
    rule = _rule(language, _rule_set(encoding=(condition,)))

    for order in ORDERS:
        data, is_written = _serialized(language, condition, order, is_about_bytes=True)
        assert (rule.fault(record(b"\0\0\0\0\1" + data[5:])) is None) == is_written, order


@pytest.mark.parametrize(
    ("more", "applies"),
    [
        ({"mode": RuleMode.WRITEREAD}, True),
        ({"mode": RuleMode.READ}, False),
        ({"disabled": True}, False),
        ({"expr": None}, False),
        ({"on_failure": "NONE"}, False),
        ({"mode": RuleMode.WRITEREAD, "on_failure": "NONE,ERROR"}, False),
        ({"kind": RuleKind.TRANSFORM}, False),
    ],
)
def test_rules_that_no_serializer_enforces_do_not_apply(more: dict[str, Any], applies: bool) -> None:
    rule = _condition("false", **more)

    assert _serialized("JSON", rule, ORDERS[0])[1] is (not applies) or rule.kind is RuleKind.TRANSFORM
    assert bool(write_rules_in(_rule_set(rule).to_dict()).conditions) is applies


def test_condition_that_cannot_be_compiled_raises_a_schema_error() -> None:
    for condition, why in (
        (_condition("message.id.isEmail()"), "its condition c cannot be compiled: .*isEmail"),
        (_condition("true", type="JSONATA"), "its condition c is written in JSONATA, which is not supported here"),
    ):
        with pytest.raises(SchemaError, match=why):
            _rule("JSON", _rule_set(condition)).fault(record(b"\0\0\0\0\1{}"))
    assert _rule("JSON", _rule_set(_condition("false"))).fault(record(None)) is None
