"""Conditions of type CEL_FIELD decide like Confluent's own serializers on the same values."""

import json
from base64 import b64encode
from copy import deepcopy
from datetime import UTC, datetime
from time import time_ns
from typing import Any

import pytest

from sluicegate.proxy.registry.http import JsonResponse
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.validation.rules.rule import INLINE_STEPS, SchemaError, Side
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema, SubjectName
from sluicegate.validation.rules.schemas.registry_conditions import MeetsConditions
from tests.registry.test_protobuf_serializers import classes_of, file_descriptor_of
from tests.registry.test_schema_registry import ScriptedRegistry
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

pytest.importorskip("celpy", reason="cel-python is not installed: pip install 'confluent-kafka[rules]'")

from confluent_kafka.schema_registry import (
    Metadata,
    MetadataTags,
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaRegistryClient,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from google.protobuf.json_format import ParseDict

CelFieldExecutor.register()
CONTEXT = SerializationContext("orders", MessageField.VALUE)


def _avro(name: str, *fields: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_field(*each) for each in fields], **more}


def _field(name: str, kind: Any, *tags: str) -> dict[str, Any]:
    return {"name": name, "type": kind} | ({"confluent:tags": list(tags)} if tags else {})


AVRO = _avro(
    "Order",
    ("id", "string", "ID"),
    ("count", "long"),
    ("price", "double"),
    ("weight", "float"),
    ("data", "bytes", "RAW"),
    ("size", "int"),
    ("paid", "boolean", "FLAG"),
    ("mail", ["null", "string"], "PII"),
    ("state", {"type": "enum", "name": "State", "symbols": ["none", "open"]}),
    ("hash", {"type": "fixed", "name": "Hash", "size": 2}),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ("labels", {"type": "array", "items": "string"}, "PII"),
    ("sizes", {"type": "map", "values": "int"}),
    ("buyer", _avro("Person", ("name", "string", "PII"), ("age", ["null", "int"]))),
    ("others", {"type": "array", "items": "Person"}),
    ("either", ["null", _avro("A", ("x", "string")), _avro("B", ("y", "int"), namespace="other")]),
    ("places", {"type": "map", "values": _avro("Place", ("city", "string"))}),
    ("next", ["null", "Order"]),
    namespace="shop",
)
AVRO_DOCUMENT: dict[str, Any] = {
    "id": "o-1",
    "count": 7,
    "price": 1.5,
    "weight": 0.5,
    "data": b"\x01",
    "size": 3,
    "paid": True,
    "mail": "a@b.org",
    "state": "open",
    "hash": b"ab",
    "at": datetime(2024, 1, 1, tzinfo=UTC),
    "labels": ["eu", "us"],
    "sizes": {"s": 1},
    "buyer": {"name": "Ann", "age": 30},
    "others": [{"name": "Bob", "age": None}],
    "either": {"x": "here"},
    "places": {"home": {"city": "Oslo"}},
    "next": None,
}
AVRO_CHANGES: list[dict[str, Any]] = [
    {},
    {"mail": None, "paid": False},
    {"id": ""},
    {"count": -1, "size": -1},
    {"price": -1.0},
    {"weight": -1.0},
    {"data": b""},
    {"labels": [""], "sizes": {"s": -5}},
    {"labels": [], "others": []},
    {"buyer": {"name": "", "age": None}},
    {"others": [{"name": "", "age": -1}]},
    {"either": {"y": -1}},
    {"either": {"x": ""}},
    {"places": {"home": {"city": ""}}},
    {"next": AVRO_DOCUMENT | {"id": "", "buyer": {"name": "", "age": -1}}},
]
JSON = {
    "type": "object",
    "title": "Order",
    "properties": {
        "id": {"type": "string", "confluent:tags": ["ID"]},
        "count": {"type": "integer"},
        "price": {"type": "number"},
        "paid": {"type": "boolean", "confluent:tags": ["FLAG"]},
        "mail": {"type": ["null", "string"], "confluent:tags": ["PII"]},
        "code": {"type": ["integer", "string"], "maxLength": 3},
        "state": {"type": "string", "enum": ["", "open"]},
        "nothing": {"type": "null"},
        "labels": {"type": "array", "items": {"type": "string"}, "confluent:tags": ["PII"]},
        "free": {"type": "object"},
        "buyer": {"$ref": "#/definitions/Person"},
        "others": {"type": "array", "items": {"$ref": "#/definitions/Person"}},
        "either": {"oneOf": [{"type": "null"}, {"type": "string", "minLength": 1}, {"$ref": "#/definitions/Person"}]},
        "both": {"allOf": [{"type": "string"}]},
        "some": {"anyOf": [{"type": "string"}, {"type": "integer"}], "confluent:tags": ["ANY"]},
        "mixed": {"allOf": [{"$ref": "#/definitions/Person"}], "properties": {"more": {"type": "string"}}},
        "next": {"$ref": "#"},
    },
    "definitions": {
        "Person": {
            "type": "object",
            "properties": {"name": {"type": "string", "confluent:tags": ["PII"]}, "age": {"type": "integer"}},
        }
    },
}
JSON_DOCUMENT: dict[str, Any] = {
    "id": "o-1",
    "count": 7,
    "price": 1.5,
    "paid": True,
    "mail": "a@b.org",
    "code": "abc",
    "state": "open",
    "nothing": None,
    "labels": ["eu"],
    "free": {"x": ""},
    "buyer": {"name": "Ann", "age": 30},
    "others": [{"name": "Bob"}],
    "either": "x",
    "both": "y",
    "some": "z",
    "mixed": {"name": "Cid", "more": "m", "unknown": ""},
}
JSON_CHANGES: list[dict[str, Any]] = [
    {},
    {"mail": None, "paid": False},
    {"id": ""},
    {"count": -1},
    {"price": -0.5},
    {"code": -1},
    {"code": ""},
    {"state": ""},
    {"labels": [""]},
    {"labels": [], "others": []},
    {"buyer": {"name": ""}},
    {"others": [{"name": "", "age": -1}]},
    {"either": {"name": ""}},
    {"either": None, "both": ""},
    {"some": ""},
    {"some": -1},
    {"mixed": {"name": "", "more": ""}},
    {"mixed": {"name": "x", "more": ""}},
    {"next": {"id": "", "buyer": {"name": "x"}}},
    {"next": {"next": {"mail": ""}}},
    {"extra": ""},
]
PROTOBUF = """syntax = "proto3"; package shop;
import "confluent/meta.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Order {
  string id = 1 [(confluent.field_meta).tags = "ID"];
  int64 count = 2;
  uint32 size = 3;
  double price = 4;
  bytes data = 5 [(confluent.field_meta).tags = "RAW"];
  optional bool paid = 6 [(confluent.field_meta).tags = "FLAG"];
  optional string mail = 7 [(confluent.field_meta) = {tags: ["PII", "MAIL"]}];
  enum State { NONE = 0; OPEN = 1; }
  State state = 8;
  repeated string labels = 9 [(confluent.field_meta).tags = "PII"];
  map<string, string> names = 10;
  message Person { optional string name = 1 [(confluent.field_meta).tags = "PII"]; sint32 age = 2; }
  Person buyer = 11;
  repeated Person others = 12;
  map<string, Person> places = 13;
  oneof either { string x = 14; Person y = 15; int32 z = 16; }
  google.protobuf.Timestamp at = 17;
  google.protobuf.StringValue nick = 18;
  Order next = 19;
}"""
PROTOBUF_DOCUMENT: dict[str, Any] = {
    "id": "o-1",
    "count": 7,
    "size": 3,
    "price": 1.5,
    "data": "AQ==",
    "paid": True,
    "mail": "a@b.org",
    "state": 1,
    "labels": ["eu"],
    "names": {"k": ""},
    "buyer": {"name": "Ann", "age": 3},
    "others": [{"name": "Bob", "age": 1}],
    "places": {"home": {"name": "Cid", "age": 1}},
    "x": "here",
    "nick": "n",
}
PROTOBUF_CHANGES: list[dict[str, Any]] = [
    {},
    {"mail": "", "paid": False},
    {"id": ""},
    {"count": -1},
    {"size": 0},
    {"price": -1.0},
    {"labels": [""]},
    {"labels": [], "others": [], "places": {}},
    {"buyer": {"name": "", "age": 3}},
    {"buyer": {"age": -3}},
    {"others": [{"name": "", "age": 1}]},
    {"places": {"home": {"name": "", "age": 1}}},
    {"x": ""},
    {"x": None, "y": {"name": "", "age": 1}},
    {"x": None, "z": -1},
    {"at": "1970-01-01T00:00:05Z"},
    {"nick": ""},
    {"next": PROTOBUF_DOCUMENT | {"id": ""}},
]
METADATA = Metadata(
    tags=MetadataTags(
        {
            "**.count": ["NUMBER"],
            "shop.Order.pric?": ["NUMBER", "PRICE"],
            "$.price": ["PRICE"],
            "*.*.size": ["NUMBER"],
            "**.Pers*.*": ["PERSON"],
            "*.mixed.*": ["PERSON"],
        }
    ),
    properties=None,
    sensitive=None,
)
CONDITIONS: list[tuple[str, list[str] | None]] = [
    ("typeName == 'STRING' ; value != ''", None),
    ("typeName in ['INT', 'LONG', 'FLOAT', 'DOUBLE'] ; typeName == 'INT' || value >= 0", None),
    ("typeName == 'INT' ; value >= 0", None),
    ("typeName == 'DOUBLE' || typeName == 'FLOAT' ; value >= 0.0", None),
    ("typeName == 'BYTES' ; size(value) > 0", None),
    ("name != 'mail' || value == null || value.contains('@')", ["PII"]),
    ("size(value) > 0", ["PII"]),
    ("typeName != 'STRING' || value != ''", ["ID", "ANY", "PERSON"]),
    ("value.size() > 0", ["LABEL"]),
    ("value != null", ["PII"]),
    ("value", ["FLAG"]),
    ("typeName != 'BOOLEAN' || value == true", None),
    ("'NUMBER' in tags || 'PRICE' in tags ; value >= 0 || value >= 0.0", None),
    ("size(tags) == 0 || tags.all(each, each != 'MAIL')", None),
    ("name == 'name' ; fullName.endsWith('Person.name') && message.name == value", None),
    ("name == 'id' ; message.count > 0", None),
    ("fullName in ['shop.Order.id', '$.id', 'Order.id'] ; value.startsWith('o-')", None),
    ("fullName in ['other.B.y', 'shop.A.x', '$.next.next.mail', '$.buyer.name'] ; size(string(value)) > 1", None),
    ("typeName == 'NULL' ; false", None),
    ("typeName == 'LONG' && name == 'at' ; value > timestamp('1999-01-01T00:00:00Z')", None),
    ("true", None),
    ("now > timestamp('2020-01-01T00:00:00Z')", ["ID"]),
    ("name == 'id' ; now < timestamp('2020-01-01T00:00:00Z')", None),
    ("value", ["ID"]),
    ("value.missing", ["ID"]),
    ("size(value)", ["ID"]),
]


class _Case:
    """One schema and one condition: Confluent's serializer, and our rule."""

    def __init__(self, language: str, expression: str, tags: list[str] | None, **more: Any) -> None:
        self.language = language
        given = {"mode": RuleMode.WRITE, "kind": RuleKind.CONDITION, "type": "CEL_FIELD", "on_failure": None}
        rest = {"doc": None, "params": None, "on_success": None, "disabled": None}
        rule = Rule(name="c", tags=tags, expr=expression, **(given | rest | more))
        self.rules = RuleSet(migration_rules=None, domain_rules=[rule])
        if language == "PROTOBUF":
            self.new = classes_of(PROTOBUF)("shop.Order")
            self.text = b64encode(file_descriptor_of(PROTOBUF).SerializeToString()).decode()
        else:
            self.text = json.dumps(AVRO if language == "AVRO" else JSON)
        self._plain = self._serializer(None)
        self._ruled = self._serializer(self.rules)

    def _serializer(self, rules: RuleSet | None) -> Any:
        client = SchemaRegistryClient.new_client({"url": "mock://"})
        client.register_schema("orders-value", Schema(self.text, self.language, [], METADATA, rules))
        conf = {"auto.register.schemas": False, "use.latest.version": True}
        if self.language == "AVRO":
            return AvroSerializer(client, self.text, conf=conf)
        if self.language == "JSON":
            return JSONSerializer(self.text, client, conf=conf)
        return ProtobufSerializer(self.new, client, conf | {"use.deprecated.format": False})

    def data(self, document: dict[str, Any]) -> bytes:
        """Return what the serializer writes without the rule."""
        value = ParseDict(document, self.new()) if self.language == "PROTOBUF" else document
        return bytes(self._plain(deepcopy(value), CONTEXT))

    def written(self, document: dict[str, Any]) -> tuple[bytes, bool]:
        """Return what the serializer writes without the rule, and whether it writes with the rule."""
        value = ParseDict(document, self.new()) if self.language == "PROTOBUF" else document
        data = self.data(document)
        try:
            self._ruled(deepcopy(value), CONTEXT)
        except SerializationError:
            return data, False
        return data, True

    def rule(self) -> MeetsConditions:
        return _rule_over(Schema(self.text, self.language, [], METADATA, self.rules).to_dict())


DOCUMENTS = {
    "AVRO": (AVRO_DOCUMENT, AVRO_CHANGES),
    "JSON": (JSON_DOCUMENT, JSON_CHANGES),
    "PROTOBUF": (PROTOBUF_DOCUMENT, PROTOBUF_CHANGES),
}


@pytest.mark.long
@pytest.mark.parametrize("language", list(DOCUMENTS))
@pytest.mark.parametrize(("expression", "tags"), CONDITIONS)
def test_a_field_condition_agrees_with_confluents_serializer(
    language: str, expression: str, tags: list[str] | None
) -> None:
    case = _Case(language, expression, tags)
    rule = case.rule()
    document, changes = DOCUMENTS[language]

    found = []
    for change in changes:
        data, is_written = case.written(document | change)
        words = rule.fault(record(b"\0\0\0\0\1" + data[5:]))
        found.append((change, is_written, words))

    assert [each for each in found if (each[2] is None) != each[1]] == []


def test_an_empty_object_is_accepted_as_by_javas_client() -> None:
    """Python's client takes the truth of the whole value for that of the condition."""
    case = _Case("JSON", "true", None)
    data, is_written = case.written({})

    assert not is_written
    assert case.rule().fault(record(b"\0\0\0\0\1" + data[5:])) is None


def test_field_condition_violation_names_the_field_but_not_its_value() -> None:
    rule = _Case("JSON", "value.startsWith('o-')", ["ID"]).rule()

    words = str(rule.fault(record(b'\0\0\0\0\1{"id": "a secret"}')))
    assert "does not meet the condition c of schema 1 of registry main: not true of the field $.id" in words
    assert "$.id" in str(rule.fault(record(b'\0\0\0\0\1{"id": 5}')))  # an error of the expression
    assert "secret" not in words


def test_fields_are_counted_before_their_conditions_are_evaluated() -> None:
    case = _Case("AVRO", "typeName == 'STRING' ; value != ''", None)
    rule = case.rule()
    counts = (1, 1_000, 100_000)
    small, large, huge = (case.data(AVRO_DOCUMENT | {"labels": ["x"] * count}) for count in counts)
    values = [record(b"\0\0\0\0\1" + data[5:]) for data in (small, large, huge)]

    assert rule.fault(values[0]) is None  # the first call compiles the rule
    assert steps_of(rule.fault, values[0]) <= INLINE_STEPS < steps_of(rule.fault, values[1])
    assert rule.fault(values[1]) is None
    assert "too costly to validate: more than 100,000 fields" in str(rule.fault(values[2]))


def test_field_condition_on_a_circular_schema_is_too_costly() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "#/properties/a"}}}
    rule = {"name": "c", "kind": "CONDITION", "type": "CEL_FIELD", "mode": "WRITE", "expr": "true"}
    body = {"schemaType": "JSON", "schema": json.dumps(schema), "ruleSet": {"domainRules": [rule]}}

    words = _rule_over(body).fault(record(b'\0\0\0\0\1{"a": 1}'))
    assert "too costly to validate" in str(words)


@pytest.mark.parametrize(
    ("rule", "metadata", "words"),
    [
        ({"tags": "PII"}, None, "the tags of its rule c cannot be read"),
        ({}, {"tags": ["PII"]}, "the tags of its metadata cannot be read"),
        ({}, {"tags": {"**": "PII"}}, "the tags of its metadata cannot be read"),
        ({"expr": "value.isEmail()"}, None, "its condition c cannot be compiled: .*isEmail"),
    ],
)
def test_an_unusable_field_condition_is_a_schema_error(rule: dict[str, Any], metadata: Any, words: str) -> None:
    given = {"name": "c", "kind": "CONDITION", "type": "CEL_FIELD", "mode": "WRITE", "expr": "true", **rule}
    body = {"schemaType": "JSON", "schema": "{}", "ruleSet": {"domainRules": [given]}, "metadata": metadata}

    with pytest.raises(SchemaError, match=words):
        _rule_over(body).fault(record(b"\0\0\0\0\1{}"))


def _rule_over(body: dict[str, Any]) -> MeetsConditions:
    http = ScriptedRegistry()
    http.answers["/schemas/ids/1"] = JsonResponse(200, json.loads(json.dumps(body)))
    registry = SchemaRegistry("main", http, 60, 30)
    return MeetsConditions(HasRegisteredSchema(Side.VALUE, registry, None, SubjectName.ANY), Side.VALUE, time_ns)
