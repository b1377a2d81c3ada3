"""One contract validates the same data in JSON, Avro and Protobuf: each rule has the same verdicts in each format.

fastavro and Google's protobuf write the data.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from sluicegate.validation.rules.avro.schema import serialized_avro_content
from sluicegate.validation.rules.from_keys import rule_set_of
from sluicegate.validation.rules.protobuf.indexed_schema import indexed_protobuf_content
from sluicegate.validation.rules.rule import NamedRule
from sluicegate.validation.rules.schemas.content import SchemaLanguage
from sluicegate.validation.rules.schemas.framing import ConfluentFraming
from sluicegate.validation.rules.schemas.registered_schema import RegisteredSchema
from tests.config.contracts.written import contract_with_fields, load_texts
from tests.validation.rules.records import record

FIELDS = """
      - {name: id, logicalType: string, required: true,
         logicalTypeOptions: {minLength: 2, maxLength: 8, pattern: '^[a-zé0-9-]*$'}}
      - {name: amount, logicalType: number, required: true, logicalTypeOptions: {exclusiveMinimum: 0, maximum: 99.95}}
      - {name: ratio, logicalType: number, required: true, logicalTypeOptions: {maximum: 0.1}}
      - {name: count, logicalType: integer, required: true, logicalTypeOptions: {maximum: 9007199254740993}}
      - {name: state, logicalType: string, required: true, enum: [{value: NEW}, {value: SENT}]}
      - {name: at, logicalType: timestamp, required: true}
      - {name: email, logicalType: string, logicalTypeOptions: {format: email}, quality: [
         {id: not-example, metric: invalidValues, mustBe: 0, arguments: {pattern: '^[^@]+@example[.](org|com)$'}},
         {id: has-email, metric: nullValues, mustBe: 0, severity: warning}]}
      - {name: nickname, logicalType: string, required: true, quality: [
         {id: no-placeholder, metric: missingValues, mustBe: 0, arguments: {missingValues: [null, 'n/a']}}]}
      - {name: tags, logicalType: array, logicalTypeOptions: {minItems: 1, maxItems: 3, uniqueItems: true},
         items: {name: tag, logicalType: string, required: true, logicalTypeOptions: {minLength: 1}}}
      - {name: sizes, logicalType: map, map: {
         key: {name: k, logicalType: string, logicalTypeOptions: {pattern: '^[a-z]+$'}},
         value: {name: v, logicalType: integer, required: true, logicalTypeOptions: {minimum: 0}}}}
      - name: address
        logicalType: object
        properties:
          - {name: street, logicalType: string, required: true, logicalTypeOptions: {minLength: 1}}
          - {name: zip, logicalType: string, logicalTypeOptions: {pattern: '^[0-9]{5}$'}}
"""
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "com.example.Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "ratio", "type": "float"},
        {"name": "count", "type": "long"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "SENT", "LOST"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "email", "type": ["null", "string"]},
        {"name": "nickname", "type": ["null", "string"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "sizes", "type": {"type": "map", "values": "long"}},
        {
            "name": "address",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Address",
                    "fields": [{"name": "street", "type": "string"}, {"name": "zip", "type": ["null", "string"]}],
                },
            ],
        },
    ],
}
PROTO = """
syntax = "proto3";
package com.example;
import "google/protobuf/timestamp.proto";
message Order {
  string id = 1;
  double amount = 2;
  float ratio = 3;
  int64 count = 4;
  State state = 5;
  google.protobuf.Timestamp at = 6;
  optional string email = 7;
  optional string nickname = 8;
  repeated string tags = 9;
  map<string, int64> sizes = 10;
  Address address = 11;
  message Address { string street = 1; optional string zip = 2; }
}
enum State { NEW = 0; SENT = 1; LOST = 2; }
"""
_DESCRIPTORS = descriptor_set_of("order.proto", PROTO, {})
_ID = b"\0\0\0\0\x07"
_PARSED = fastavro.parse_schema(AVRO)
_MILLIS = 1_800_000_000_250


class OneSchema:
    """A registry with one schema, under any subject (`Schemas`)."""

    name = "main"
    framing = ConfluentFraming()

    def __init__(self, language: SchemaLanguage) -> None:
        is_avro = language is SchemaLanguage.AVRO
        content = serialized_avro_content(json.dumps(AVRO)) if is_avro else indexed_protobuf_content(_DESCRIPTORS)
        self._schema = RegisteredSchema(language, content)

    def known(self, _schema_id: object) -> RegisteredSchema:
        return self._schema

    schema = known

    def is_registered_under(self, _schema_id: object, _subject: str) -> bool:
        return True

    def count_encrypted(self, _part: object) -> None:
        return


def encode_json(order: dict[str, Any]) -> bytes:
    return json.dumps(order | {"at": "2027-01-15T08:00:00.250Z"}).encode()


def encode_avro(order: dict[str, Any]) -> bytes:
    out = BytesIO(_ID)
    out.seek(len(_ID))
    fastavro.schemaless_writer(out, _PARSED, order | {"at": _MILLIS})
    return out.getvalue()


def encode_protobuf(order: dict[str, Any]) -> bytes:
    given = {key: value for key, value in order.items() if value is not None}
    if order["address"] is not None:
        given["address"] = {key: value for key, value in order["address"].items() if value is not None}
    message = json_format.ParseDict(given | {"at": "2027-01-15T08:00:00.250Z"}, _order_class()())
    return _ID + b"\0" + bytes(message.SerializeToString())


def _order_class() -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(_DESCRIPTORS).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("com.example.Order"))


GOOD: dict[str, Any] = {
    "id": "o-1",
    "amount": 99.95,
    "ratio": 0.1,
    "count": 2**53 + 1,
    "state": "SENT",
    "email": "a@example.org",
    "nickname": "me",
    "tags": ["a"],
    "sizes": {"s": 1},
    "address": {"street": "Main", "zip": "12345"},
}
OTHERS: dict[str, list[Any]] = {
    "id": ["é-2", "x", "too-long-id", "UP", "", "a b", "n\0l"],
    "amount": [0.5, 99.96, 0.0, -1.0, 1e300],
    "ratio": [0.25, 0.0, 1e-9, 3.0],
    "count": [0, 2**53 + 2, -(2**63), 2**63 - 1],
    "state": ["NEW", "LOST"],
    "email": [None, "a@example.com", "a@example.net", "nobody"],
    "nickname": [None, "n/a", ""],
    "tags": [[], ["a", "a"], ["", "b"], ["a", "b", "c", "d"]],
    "sizes": [{}, {"XL": 2}, {"m": -1}],
    "address": [None, {"street": "", "zip": None}, {"street": "Main", "zip": None}, {"street": "Main", "zip": "1"}],
}


def generate_orders(count: int) -> Iterator[dict[str, Any]]:
    """Orders that differ from a good one in up to two fields."""
    random = Random(46)
    for _ in range(count):
        changed = random.sample(list(OTHERS), random.randrange(3))
        yield GOOD | {field: random.choice(OTHERS[field]) for field in changed}


WRITTEN = {"json": encode_json, "avro": encode_avro, "protobuf": encode_protobuf}


@pytest.fixture
def rules_by_format(tmp_path: Path) -> Callable[[str], tuple[NamedRule, ...]]:
    def rules_for_format(form: str) -> tuple[NamedRule, ...]:
        folder = tmp_path / form
        folder.mkdir()
        contract = contract_with_fields(FIELDS).replace("format: json", f"format: {form}")
        item = "contracts: [{path: c.odcs.yaml, registry: main}]\nregistries: {main: {url: 'http://h'}}\n"
        loaded = load_texts(folder, item, c_odcs=contract)
        languages = {"json": SchemaLanguage.AVRO, "avro": SchemaLanguage.AVRO, "protobuf": SchemaLanguage.PROTOBUF}
        made = rule_set_of(loaded.config.topics[0].rules, SchemaRules({"main": OneSchema(languages[form])}))
        assert made is not None
        return made.rules

    return rules_for_format


def names_of_broken_rules(rules: tuple[NamedRule, ...], value: bytes) -> set[str]:
    one = record(value=value)
    return {named.name for named in rules if named.rule.fault(one) is not None}


def test_each_rule_gives_the_same_verdict_for_json_avro_and_protobuf(
    rules_by_format: Callable[[str], tuple[NamedRule, ...]],
) -> None:
    of_json, of_avro, of_protobuf = rules_by_format("json"), rules_by_format("avro"), rules_by_format("protobuf")
    counts: Counter[str] = Counter()

    for order in generate_orders(500):
        expected = names_of_broken_rules(of_json, encode_json(order))
        assert names_of_broken_rules(of_avro, encode_avro(order)) == expected, order
        assert names_of_broken_rules(of_protobuf, encode_protobuf(order)) == expected, order
        counts.update(expected)

    for made in (of_avro, of_protobuf):
        assert {(named.name, named.mode) for named in made} == {(named.name, named.mode) for named in of_json}
    assert set(counts) == {named.name for named in of_json}
    assert all(0 < count < 500 for count in counts.values())


@pytest.mark.parametrize("form", list(WRITTEN))
def test_violation_names_the_first_error_in_each_data_format(
    form: str, rules_by_format: Callable[[str], tuple[NamedRule, ...]]
) -> None:
    one = record(value=WRITTEN[form](GOOD | {"amount": -1.0}))

    texts = [named.rule.description(one) for named in rules_by_format(form) if named.rule.fault(one) is not None]

    assert len(texts) == 1
    assert texts[0] is not None and "/amount: exclusiveMinimum (must be more than 0)" in texts[0]


@pytest.mark.parametrize("form", ["avro", "protobuf"])
def test_data_that_do_not_match_their_schema_violate_all_schema_rules(
    form: str, rules_by_format: Callable[[str], tuple[NamedRule, ...]]
) -> None:
    made, good = rules_by_format(form), WRITTEN[form](GOOD)

    assert names_of_broken_rules(made, good) == set()
    for data in (good[:-3], b"no id", encode_json(GOOD)):
        assert names_of_broken_rules(made, data) == {named.name for named in made}
