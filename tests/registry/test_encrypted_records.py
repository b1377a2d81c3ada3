"""Records that Confluent's client encrypted with its local key service are validated as far as they are readable."""

import json
import re
from base64 import b64encode
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from time import time_ns
from typing import Any

import pytest

from sluicegate.proxy.registry.http import JsonResponse
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.proxy.reporting.logs.service_reports import RegistryReports
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.validation.rules.from_keys import rule_set_of
from sluicegate.validation.rules.rule import RecordRule, RuledRecord, Side
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema
from sluicegate.validation.rules.schemas.registry_conditions import MeetsConditions
from sluicegate.validation.rules.schemas.rule_sets import passed_over_by, write_rules_in
from sluicegate.validation.rules.schemas.schema_constraints import MeetsConstraints
from sluicegate.validation.rules.schemas.schema_expression import TrueOfSchema, json_schema_of
from tests.config.contracts.written import load_texts
from tests.registry.test_protobuf_serializers import classes_of, file_descriptor_of
from tests.registry.test_schema_registry import ScriptedRegistry
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

pytest.importorskip("celpy", reason="cel-python is not installed: pip install 'confluent-kafka[rules]'")
pytest.importorskip("tink", reason="tink is not installed: pip install 'confluent-kafka[rules]'")

from confluent_kafka.schema_registry import Metadata, MetadataTags, RuleSet, Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor
from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import (
    EncryptionExecutor,
    FieldEncryptionExecutor,
)
from confluent_kafka.schema_registry.rules.encryption.localkms.local_driver import LocalKmsDriver
from confluent_kafka.serialization import MessageField, SerializationContext

EXECUTORS = RuleRegistry()
"""A separate rule registry, because other test files use the client's global one."""
for each in (CelExecutor(), CelFieldExecutor(), EncryptionExecutor(), FieldEncryptionExecutor()):
    EXECUTORS.register_executor(each)
LocalKmsDriver.register()

TEXT = {"type": "string", "minLength": 3, "maxLength": 30}
JSON = json.dumps(
    {
        "type": "object",
        "properties": {
            "id": TEXT,
            "amount": {"type": "number", "minimum": 0},
            "email": {"type": "string", "format": "email", "pattern": "^[^@]+@[^@]+$", "confluent:tags": ["PII"]},
            "phones": {"type": "array", "items": TEXT, "maxItems": 2, "confluent:tags": ["PII"]},
            "note": {"oneOf": [{"type": "null"}, TEXT], "confluent:tags": ["PII"]},
            "card": {"$ref": "#/definitions/card", "confluent:tags": ["PII"]},
            "home": {"type": "object", "properties": {"city": TEXT, "street": TEXT}},
        },
        "required": ["id", "email"],
        "definitions": {"card": {"type": "string", "pattern": "^[a-z]{4}$"}},
    }
)
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "amount", "type": "double"},
            {"name": "email", "type": ["null", "string"], "confluent:tags": ["PII"]},
            {"name": "phones", "type": {"type": "array", "items": "string"}, "confluent:tags": ["PII"]},
        ],
    }
)
PROTOBUF = """syntax = "proto3"; package shop; import "confluent/meta.proto"; import "buf/validate/validate.proto";
message Order {
  option (buf.validate.message).cel = {id: "c", message: "m", expression: "this.email.size() < 20"};
  string id = 1 [(buf.validate.field).string.min_len = 3];
  double amount = 2;
  string email = 3 [(confluent.field_meta).tags = "PII", (buf.validate.field).string.email = true];
  repeated string phones = 4 [(confluent.field_meta).tags = "PII"];
}"""
# The client lacks the file that defines the constraints; the data are the same without them.
WITHOUT_CONSTRAINTS = re.sub(r'import "buf.*?;|option .buf.*?;|,? *.buf.validate.field.*?(?=])', "", PROTOBUF).replace(
    " []", ""
)
ORDER: dict[str, Any] = {"id": "o-1", "amount": 5.5, "email": "a@example.org", "phones": ["+49 89", "+49 30"]}
WITH_MORE = {**ORDER, "note": "ring twice", "card": "visa", "home": {"city": "Bonn", "street": "Am Markt 1"}}
CONTEXT = SerializationContext("orders", MessageField.VALUE)
KEYS = {"encrypt.kek.name": "k", "encrypt.kms.type": "local-kms", "encrypt.kms.key.id": "mykey"}


def encryption_rule(name: str, kind: str, type_: str, expression: str = "", **more: Any) -> dict[str, Any]:
    params = {"params": KEYS} if type_.startswith("ENCRYPT") else {}
    mode = "WRITEREAD" if kind == "TRANSFORM" else "WRITE"
    return {"name": name, "kind": kind, "mode": mode, "type": type_, "expr": expression, **params, **more}


FIELDS = {"domainRules": [encryption_rule("pii", "TRANSFORM", "ENCRYPT", tags=["PII"])]}
PAYLOAD = {"encodingRules": [encryption_rule("all", "TRANSFORM", "ENCRYPT_PAYLOAD")]}


def schema_body(language: str, rule_set: dict[str, Any], tags: dict[str, list[str]] | None = None) -> dict[str, Any]:
    """Return a registry's response about the schema of a language."""
    text = {"JSON": JSON, "AVRO": AVRO, "PROTOBUF": PROTOBUF}[language]
    return {
        "schemaType": language,
        "schema": text,
        "ruleSet": rule_set,
        "metadata": {"tags": tags} if tags else None,
    }


class EncryptedSchema:
    """One schema with its rules at a stand-in of a registry, and Confluent's serializer for it."""

    def __init__(self, language: str, rule_set: dict[str, Any], tags: dict[str, list[str]] | None = None) -> None:
        self.language = language
        text = {"JSON": JSON, "AVRO": AVRO, "PROTOBUF": PROTOBUF}[language]
        self.counters = Counters()
        http = ScriptedRegistry()
        http.answers["/schemas/ids/1"] = JsonResponse(200, schema_body(language, rule_set, tags))
        http.answers["/schemas/ids/1/versions"] = JsonResponse(200, [{"subject": "orders-value", "version": 1}])
        self.schemas = SchemaRegistry("main", http, 60, 30, reports=RegistryReports(self.counters))
        self.rule = HasRegisteredSchema(Side.VALUE, self.schemas)
        client = SchemaRegistryClient.new_client({"url": "mock://"})
        of_metadata = None if tags is None else Metadata(MetadataTags(tags), None, None)
        if language == "PROTOBUF":
            text = b64encode(file_descriptor_of(WITHOUT_CONSTRAINTS).SerializeToString()).decode()
        given = Schema(text, language, [], of_metadata, RuleSet.from_dict(rule_set))
        client.register_schema("orders-value", given)
        conf: dict[str, Any] = {"auto.register.schemas": False, "use.latest.version": True}
        keys = {"secret": "s"}
        if language == "AVRO":
            self._serialize: Callable[..., bytes] = AvroSerializer(client, text, None, conf, keys, EXECUTORS)
        elif language == "JSON":
            self._serialize = JSONSerializer(text, client, None, conf | {"validate": False}, keys, EXECUTORS)
        else:
            self.new = classes_of(WITHOUT_CONSTRAINTS)("shop.Order")
            conf |= {"use.deprecated.format": False}
            self._serialize = ProtobufSerializer(self.new, client, conf, keys, EXECUTORS)

    def record(self, value: dict[str, Any], headers: tuple[tuple[bytes, bytes | None], ...] = ()) -> RuledRecord:
        given = self.new(**value) if self.language == "PROTOBUF" else deepcopy(value)
        data = self._serialize(given, CONTEXT)
        return record(b"\0\0\0\0\1" + data[5:], topic="orders", headers=headers)


@pytest.mark.parametrize("language", ["JSON", "AVRO", "PROTOBUF"])
def test_skips_and_counts_records_with_an_encrypted_payload(language: str) -> None:
    written = EncryptedSchema(language, PAYLOAD)
    good = written.record(ORDER)
    rules: tuple[RecordRule, ...] = (
        written.rule,
        MeetsConditions(written.rule, Side.VALUE, time_ns),
        MeetsConstraints(written.rule, Side.VALUE),
        TrueOfSchema("value.id == 'x'", written.rule),
    )

    assert [each.fault(good) for each in rules] == [None] * 4
    assert written.counters.encrypted_records == {("main", "whole"): 1}
    assert steps_of(written.rule.fault, good) <= 10
    # The schema's id and its subject are still validated, and so is a record that the serializer did not encrypt.
    assert "not registered under subject others-value" in str(written.rule.fault(record(good.value, topic="others")))
    replayed = record(b"\0\0\0\0\1\xff", topic="orders", headers=((b"__rule.name", b"all"),))
    assert written.rule.fault(replayed) is not None


@pytest.mark.parametrize("language", ["JSON", "AVRO", "PROTOBUF"])
def test_validates_unencrypted_fields_of_records_with_encrypted_fields(language: str) -> None:
    written = EncryptedSchema(language, FIELDS)
    good = written.record(WITH_MORE if language == "JSON" else ORDER)
    assert b"example.org" not in (good.value or b"")
    constraints = MeetsConstraints(written.rule, Side.VALUE)

    assert (written.rule.fault(good), constraints.fault(good)) == (None, None)
    assert written.counters.encrypted_records == {("main", "fields"): 1}
    if language != "AVRO":  # limits on strings do not apply to it
        bad = written.record({**ORDER, "id": "o"})
        assert [written.rule.fault(bad), constraints.fault(bad)] != [None, None]
    assert written.rule.fault(record((good.value or b"") + b"\x02", topic="orders")) is not None


@pytest.mark.parametrize(
    ("pattern", "bad"), [("$.home.street", {"city": "B", "street": "Am Markt 1"}), ("**.street", {"city": "B"})]
)
def test_skips_only_fields_that_schema_metadata_tags_for_encryption(pattern: str, bad: dict[str, str]) -> None:
    written = EncryptedSchema("JSON", FIELDS, {pattern: ["PII"]})
    long = {"city": "Bonn", "street": "Am Markt 1, Seiteneingang"}

    assert written.rule.fault(written.record({**WITH_MORE, "home": long})) is None
    assert written.rule.fault(written.record({**WITH_MORE, "home": bad})) is not None


_OF_MAPS = ("size(message) > 2", "message['amount'] > 10.0")  # messages have neither sizes nor keys
CONDITIONS = [
    ("CEL", "message.email.endsWith('.org')", False),
    ("CEL", "size(message) > 2", False),
    ("CEL", "message.amount > 10.0", True),
    ("CEL", "message['amount'] > 10.0", True),
    ("CEL_FIELD", "typeName == 'STRING' ; value.size() < 20", False),
    ("CEL_FIELD", "name == 'id' ; value == 'x'", True),
    ("CEL_FIELD", "name == 'id' ; message.email == 'x'", False),
]


@pytest.mark.parametrize(
    ("language", "type_", "expression", "is_evaluated"),
    [
        (language, *each)
        for language in ("JSON", "AVRO", "PROTOBUF")
        for each in CONDITIONS
        if language != "PROTOBUF" or each[1] not in _OF_MAPS
    ],
)
def test_condition_before_encryption_ignores_encrypted_fields(
    language: str, type_: str, expression: str, is_evaluated: bool
) -> None:
    plain = EncryptedSchema(language, FIELDS)
    order = plain.record(ORDER)
    condition = encryption_rule("c", "CONDITION", type_, expression, onFailure="ERROR")
    given = EncryptedSchema(language, {"domainRules": [condition, *FIELDS["domainRules"]]})

    words = MeetsConditions(given.rule, Side.VALUE, time_ns).fault(order)

    assert (words is not None) is is_evaluated, words


def test_rule_description_mentions_skipped_encrypted_fields() -> None:
    conditions = [encryption_rule("c", "CONDITION", "CEL", "true"), encryption_rule("w", "TRANSFORM", "JSONATA", "$")]
    rule_set = {
        "domainRules": [*conditions, *FIELDS["domainRules"]],
        "encodingRules": [encryption_rule("b", "CONDITION", "CEL", "true"), *PAYLOAD["encodingRules"]],
    }

    found = write_rules_in(rule_set)

    assert found.conditions == ()
    assert list(passed_over_by(found)) == [
        "values are not validated, because its rule all changes the serialized bytes (encodingRules)",
        "only the type of fields with the tags PII is validated, because its rule pii encrypts them: formats, "
        "constraints, conditions and expressions that read them do not apply",
        "its condition c is about values that w changes later",
        "its condition b is about serialized bytes (encodingRules), which all changes",
    ]
    assert write_rules_in(rule_set | {"enableAt": "SERVER"}) == write_rules_in(None)


EXPRESSIONS = [
    ("value.email.endsWith('.org')", False),
    ("size(value.phones) > 9", False),
    ("value.amount > 10.0", True),
    ("value.id == 'x' || value.amount > 10.0", True),
]
"""Expressions in a configuration that are false for ORDER, and whether they can be evaluated on the stored data."""


@cache
def _with_encrypted_fields(language: str) -> EncryptedSchema:
    return EncryptedSchema(language, FIELDS)


@pytest.mark.parametrize("language", ["JSON", "AVRO", "PROTOBUF"])
@pytest.mark.parametrize(("expression", "is_evaluated"), EXPRESSIONS)
def test_expression_ignores_encrypted_fields(language: str, expression: str, is_evaluated: bool) -> None:
    written = _with_encrypted_fields(language)
    rule = TrueOfSchema(expression.replace("endsWith('.org')", "endsWith('.com')"), written.rule)

    assert (rule.fault(written.record(ORDER)) is not None) is is_evaluated


OVER_DATA: list[tuple[dict[str, Any], bool]] = [
    ({"properties": {"email": {"type": "string", "pattern": "@", "maxLength": 20}}}, True),
    ({"properties": {"email": {"enum": ["a@example.org"]}, "phones": {"items": {"minLength": 9}}}}, True),
    ({"properties": {"id": {"pattern": "^x"}, "email": {"pattern": "@"}}}, False),
    ({"properties": {"email": {"type": "integer"}}}, False),
    ({"required": ["email", "id", "other"]}, False),
    ({"not": {"properties": {"email": {"const": "b@example.org"}}}}, True),
    ({"not": {"properties": {"id": {"const": "o-1"}}}}, False),
    (
        {
            "oneOf": [
                {"properties": {"email": {"pattern": "org$"}}, "required": ["email"]},
                {"properties": {"email": {"pattern": "com$"}}},
            ]
        },
        True,
    ),
    (
        {
            "$defs": {"a": {"properties": {"email": {"const": "b@example.org"}}}},
            "if": {"$ref": "#/$defs/a"},
            "then": {"required": ["other"]},
        },
        True,
    ),
    ({"if": {"properties": {"id": {"const": "o-1"}}}, "then": {"required": ["other"]}}, False),
    ({"oneOf": [{"required": ["id"]}, {"required": ["amount"]}], "properties": {"email": {"pattern": "@"}}}, False),
    ({"patternProperties": {"^e": {"pattern": "@", "maxLength": 20}}}, True),
    ({"patternProperties": {"^e": {"type": "integer"}}}, False),
    ({"patternProperties": {"^(e|i)": {"maxLength": 20}}}, True),
    ({"patternProperties": {"^(e|i)": {"maxLength": 2}}}, False),
    ({"patternProperties": {"i": {"maxLength": 2}}}, False),
    ({"patternProperties": {"^(?!a)e": {"maxLength": 20}}}, True),
    ({"not": {"patternProperties": {"^e": {"maxLength": 20}}}}, True),
    (
        {"additionalProperties": {"type": ["string", "number", "array"], "maxLength": 20, "items": {"maxLength": 9}}},
        True,
    ),
    ({"additionalProperties": {"type": ["string", "number", "array"], "maxLength": 2}}, False),
    ({"properties": {"email": True}, "additionalProperties": {"maxLength": 2}}, False),
    ({"properties": {"id": True, "amount": True, "phones": True}, "additionalProperties": False}, False),
    ({"properties": {"id": {"const": "o-1"}}, "unevaluatedProperties": {"maxLength": 20}}, True),
    ({"enum": [ORDER]}, True),
    ({"const": {"id": "o-1"}}, False),
]
"""JSON Schemas for the data of ORDER, and whether its encrypted form passes."""


@pytest.mark.parametrize("language", ["JSON", "AVRO", "PROTOBUF"])
@pytest.mark.parametrize(("schema", "passes"), OVER_DATA)
def test_json_schema_of_decoded_data_ignores_encrypted_fields(
    language: str, schema: dict[str, Any], passes: bool
) -> None:
    written = _with_encrypted_fields(language)
    rule = TrueOfSchema(json.dumps(schema), written.rule, json_schema_of)

    assert (rule.fault(written.record(ORDER)) is None) is passes


def test_encrypted_record_is_counted_once_for_all_rules_of_its_topic(tmp_path: Path) -> None:
    written = EncryptedSchema("JSON", PAYLOAD)
    rules = [{"name": f"r{i}", "value": {"schema": {"registry": "main"}}} for i in range(2)]
    topics = json.dumps([{"match": "orders", "rules": rules}])
    config = load_texts(tmp_path, f"topics: {topics}\nregistries: {{main: {{url: 'http://h'}}}}\n").config
    made = rule_set_of(config.topics[0].rules, SchemaRules({"main": written.schemas}))
    assert made is not None

    assert [named.rule.fault(written.record(ORDER)) for named in made.rules] == [None, None]
    assert written.counters.encrypted_records == {("main", "whole"): 1}
