"""Records that were written with a real registry are validated while the registry stops and starts."""

import json
from time import monotonic

import pytest

from sluicegate.proxy.registry.http import RegistryHttp
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.validation.rules.rule import Outage, Side
from sluicegate.validation.rules.schemas.content import SchemaLanguage
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema, SubjectName
from tests.broker.eventually import eventually
from tests.registry.apicurio import Apicurio
from tests.validation.rules.records import record

STREET = {"type": "record", "name": "com.example.Street", "fields": [{"name": "name", "type": "string"}]}
HOME = {"type": "record", "name": "com.example.Home", "fields": [{"name": "street", "type": "com.example.Street"}]}
PROTO = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto"; import "money.proto";
message Order { string id = 1; message Line { int32 qty = 1; } google.protobuf.Timestamp at = 2; Money sum = 3; }
message Refund { int64 of = 1; }"""
MONEY = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'


def framed_by_id(schema_id: int, data: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4) + data


def rule_for(
    registry: Apicurio, subject: SubjectName = SubjectName.TOPIC, side: Side = Side.VALUE
) -> HasRegisteredSchema:
    return HasRegisteredSchema(side, SchemaRegistry("main", RegistryHttp(registry.url)), None, subject)


def test_validates_avro_data_by_a_schema_with_a_reference(apicurio: Apicurio) -> None:
    apicurio.register("street", json.dumps(STREET))
    named = [{"name": "com.example.Street", "subject": "street", "version": 1}]
    schema_id = apicurio.register("homes-value", json.dumps(HOME), references=named)
    rule = rule_for(apicurio)

    assert rule.fault(record(framed_by_id(schema_id, b"\x06abc"), topic="homes")) is None
    words = rule.fault(record(framed_by_id(schema_id, b"\x06ab"), topic="homes"))
    assert words == (
        "the value does not match its Avro schema: Street.name cannot be read at byte 1: the data ends within it; was "
        "it "
        f"written with this schema? (schema {schema_id} of registry main)"
    )


def test_each_schema_id_error_has_a_distinct_message(apicurio: Apicurio) -> None:
    schema_id = apicurio.register("orders-value", json.dumps({**STREET, "name": "com.example.Order"}))
    rule = rule_for(apicurio)

    assert rule.fault(record(framed_by_id(schema_id, b"\0"))) is None
    assert rule.fault(record(None)) is None
    assert "names no schema" in str(rule.fault(record(b'{"plain": "json"}')))
    assert "schema 4711, which registry main does not have" in str(rule.fault(record(framed_by_id(4711, b"\0"))))
    wrong = str(rule.fault(record(framed_by_id(schema_id, b"\0"), topic="payments")))
    assert "not registered under subject payments-value" in wrong
    assert "value.subject.name.strategy" in wrong
    protobuf_only = HasRegisteredSchema(
        Side.VALUE, SchemaRegistry("main", RegistryHttp(apicurio.url)), SchemaLanguage.PROTOBUF
    )
    assert ("is AVRO, but this topic requires PROTOBUF") in str(
        protobuf_only.fault(record(framed_by_id(schema_id, b"\0")))
    )


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        (SubjectName.RECORD, "com.example.Thing"),
        (SubjectName.TOPIC_RECORD, "things-com.example.Thing"),
        (SubjectName.ANY, "whatever"),
    ],
)
def test_subject_names_follow_the_serializer_naming_strategies(
    apicurio: Apicurio, strategy: SubjectName, subject: str
) -> None:
    schema_id = apicurio.register(subject, json.dumps({**STREET, "name": "com.example.Thing", "doc": subject}))

    assert rule_for(apicurio, strategy).fault(record(framed_by_id(schema_id, b"\0"), topic="things")) is None


def test_schema_id_is_read_from_a_header(apicurio: Apicurio) -> None:
    schema_id = apicurio.register("heads-key", '"string"')
    rule = rule_for(apicurio, side=Side.KEY)
    named = ((b"__key_schema_id", framed_by_id(schema_id, b"")),)

    assert rule.fault(record(key=b"\x02a", headers=named, topic="heads")) is None
    assert "does not match its Avro" in str(rule.fault(record(key=b"\x04a", headers=named, topic="heads")))
    broken = ((b"__key_schema_id", b"\x07"),)
    assert "neither a schema id nor a GUID" in str(rule.fault(record(key=b"", headers=broken, topic="heads")))


def test_a_registered_json_schema_accepts_and_rejects_values(apicurio: Apicurio) -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "number", "minimum": 0}}, "required": ["amount"]}
    schema_id = apicurio.register("json-value", json.dumps(schema), "JSON")
    rule = rule_for(apicurio)

    assert rule.fault(record(framed_by_id(schema_id, b'{"amount": 1}'), topic="json")) is None
    negative = record(framed_by_id(schema_id, b'{"amount": -1}'), topic="json")
    assert "does not match its JSON Schema" in str(rule.fault(negative))
    assert "does not match its JSON Schema: /amount: minimum (must be at least 0)" in str(rule.description(negative))


def test_validates_protobuf_with_imports_by_message_index(apicurio: Apicurio) -> None:
    apicurio.register("money", MONEY, "PROTOBUF")
    named = [{"name": "money.proto", "subject": "money", "version": 1}]
    schema_id = apicurio.register("proto-value", PROTO, "PROTOBUF", named)
    rule = rule_for(apicurio)

    def violation_of(data: bytes) -> str | None:
        return rule.fault(record(framed_by_id(schema_id, data), topic="proto"))

    assert violation_of(b"\0" + b"\x0a\x01a\x1a\x02\x08\x07") is None  # the first message: Order
    assert violation_of(b"\x02\x02" + b"\x08\x05") is None  # [1]: Refund
    assert violation_of(b"\x04\0\0" + b"\x08\x05") is None  # [0, 0]: Order.Line
    assert "cannot be read as shop.Order" in str(violation_of(b"\0" + b"\x0a\x05a"))
    assert "do not select a message" in str(violation_of(b"\x02\x08" + b"\x08\x05"))
    assert "do not select a message" in str(violation_of(b""))


@pytest.mark.long
def test_a_registry_outage_is_reported_and_ends_when_it_returns(apicurio: Apicurio) -> None:
    schema_id = apicurio.register("gone-value", '"long"')
    rule = rule_for(apicurio)
    assert rule.fault(record(framed_by_id(schema_id, b"\x02"), topic="gone")) is None

    apicurio.stop()

    assert rule.fault(record(framed_by_id(schema_id, b"\x02"), topic="gone")) is None
    with pytest.raises(Outage, match="registry main is unavailable"):
        rule.fault(record(framed_by_id(4711, b"\x02"), topic="gone"))

    apicurio.start()  # the registry is in memory, so all schemas are lost
    again = apicurio.register("back-value", '"int"')

    def is_known_again() -> bool:
        try:
            return rule.fault(record(framed_by_id(again + 1000, b"\x02"), topic="back")) is not None
        except Outage:
            return False

    eventually(is_known_again)


def test_fifty_records_wait_only_once_for_an_unresponsive_registry(silent_url: str) -> None:
    rule = HasRegisteredSchema(Side.VALUE, SchemaRegistry("main", RegistryHttp(silent_url), wait_seconds=0.2))
    begin = monotonic()

    for _ in range(50):
        with pytest.raises(Outage, match=r"no response within 0\.2 s"):
            rule.fault(record(framed_by_id(7, b"")))

    assert monotonic() - begin < 5


def test_accepts_avro_bytes_without_a_length_as_from_the_java_serializer(apicurio: Apicurio) -> None:
    schema_id = apicurio.register("raw-value", '"bytes"')

    assert rule_for(apicurio).fault(record(framed_by_id(schema_id, b"hello"), topic="raw")) is None


@pytest.mark.long
def test_schema_ids_of_a_rebuilt_registry_resolve_to_the_new_schemas(apicurio: Apicurio) -> None:
    """The registry assigns new ids in another order. A permanently deleted id has no schema."""
    apicurio.stop()
    apicurio.start()
    before = {kind: apicurio.register(f"{kind}-value", f'"{kind}"') for kind in ("long", "boolean")}
    rule = HasRegisteredSchema(
        Side.VALUE, SchemaRegistry("main", RegistryHttp(apicurio.url), refresh_seconds=0.2), None, SubjectName.ANY
    )
    good = {"long": b"\xac\x02", "boolean": b"\x01"}
    for kind, data in good.items():
        assert rule.fault(record(framed_by_id(before[kind], data))) is None

    apicurio.stop()
    apicurio.start()
    now = {kind: apicurio.register(f"{kind}-value", f'"{kind}"') for kind in ("boolean", "long")}

    assert now == {"boolean": before["long"], "long": before["boolean"]}
    eventually(lambda: all(rule.fault(record(framed_by_id(now[kind], data))) is None for kind, data in good.items()))
    assert rule.fault(record(framed_by_id(now["boolean"], good["long"]))) is not None
    for permanent in ("", "?permanent=true"):
        apicurio.delete(f"/subjects/long-value{permanent}")
    eventually(lambda: "does not have" in str(rule.fault(record(framed_by_id(now["long"], good["long"])))))
