"""Records of Apicurio's own serializers, which name schemas by its native ids, are validated with a real registry.

The framing is that of apicurio-registry-serde-common 2.6: ids of 8 or 4 bytes, or headers of 8 bytes.
"""

import json
from typing import Any
from urllib.request import Request, urlopen

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from sluicegate.config.registries import Registry
from sluicegate.proxy.registry.met_subjects import MetSubjects
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.schema_compiler import compile_inline
from sluicegate.proxy.registry.survey import RegistrySurvey
from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from sluicegate.validation.rules.rule import Header, Outage, Side
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema, SubjectName
from tests.oracle.java_serializers import apicurio_protobuf
from tests.registry.apicurio import Apicurio
from tests.validation.rules.records import record

STREET = {
    "type": "record",
    "name": "Street",
    "namespace": "com.example",
    "fields": [{"name": "name", "type": "string"}],
}
HOME = {
    "type": "record",
    "name": "Home",
    "namespace": "com.example",
    "fields": [{"name": "street", "type": "com.example.Street"}],
}
GOOD, BAD = b"\x06abc", b"\x06ab"


def register_artifact(
    apicurio: Apicurio, name: str, content: str, kind: str = "AVRO", references: Any = None
) -> dict[str, Any]:
    """Register a schema with the native API; return the response, which has both ids of the artifact."""
    headers = {
        "Content-Type": "application/create.extended+json",
        "X-Registry-ArtifactId": name,
        "X-Registry-ArtifactType": kind,
    }
    body = json.dumps({"content": content, "references": references or []}).encode()
    with urlopen(
        Request(f"{native_url(apicurio)}/groups/default/artifacts?ifExists=UPDATE", body, headers), timeout=60
    ) as response:
        made: dict[str, Any] = json.load(response)
    return made


def native_url(apicurio: Apicurio) -> str:
    return f"http://127.0.0.1:{apicurio.port}/apis/registry/v2"


def rule_for(apicurio: Apicurio, subject: SubjectName = SubjectName.TOPIC, **keys: Any) -> HasRegisteredSchema:
    section = Registry(url=native_url(apicurio), type="apicurio", **keys)
    return HasRegisteredSchema(Side.VALUE, Registries().by_name({"main": section})["main"], None, subject)


@pytest.fixture(scope="module")
def registered_schema_ids(apicurio: Apicurio) -> dict[str, Any]:
    """Return a schema with a reference, whose two ids differ."""
    register_artifact(apicurio, "copy", '"string"')
    for i in range(10):  # other tests' schemas may have advanced both numbers
        register_artifact(apicurio, f"copy-of-copy-{i}", '"string"')
        made = register_artifact(apicurio, f"probe-{i}", json.dumps({"type": "fixed", "name": f"P{i}", "size": 1}))
        if made["globalId"] != made["contentId"]:
            break
    register_artifact(apicurio, "street", json.dumps(STREET))
    named = [{"groupId": "default", "artifactId": "street", "version": "1", "name": "com.example.Street"}]
    made = register_artifact(apicurio, "homes-value", json.dumps(HOME), references=named)
    assert made["globalId"] != made["contentId"]
    return made


@pytest.mark.parametrize("kind", ["globalId", "contentId"])
@pytest.mark.parametrize("place", ["eight bytes", "four bytes", "header"])
def test_validates_records_by_apicurio_native_schema_ids(
    apicurio: Apicurio, registered_schema_ids: dict[str, Any], kind: str, place: str
) -> None:
    number: int = registered_schema_ids[kind]
    prefix = {"eight bytes": b"\0" + number.to_bytes(8), "four bytes": b"\0" + number.to_bytes(4), "header": b""}[place]
    headers: tuple[Header, ...] = ((f"apicurio.value.{kind}".encode(), number.to_bytes(8)),) if not prefix else ()
    rule = rule_for(apicurio, id=kind)

    assert rule.fault(record(prefix + GOOD, topic="homes", headers=headers)) is None
    words = str(rule.fault(record(prefix + BAD, topic="homes", headers=headers)))
    assert "does not match its Avro schema" in words
    assert f"(schema {kind} {number} of registry main)" in words
    elsewhere = str(rule.fault(record(prefix + GOOD, topic="payments", headers=headers)))
    assert "not registered under subject payments-value" in elsewhere
    assert elsewhere.endswith("comes from the serializer's apicurio.registry.artifact-resolver-strategy")


def test_a_record_without_a_schema_id_is_rejected(apicurio: Apicurio, registered_schema_ids: dict[str, Any]) -> None:
    rule = rule_for(apicurio)

    unknown = str(rule.fault(record(b"\0" + (4711).to_bytes(8) + GOOD)))
    assert "which registry main does not have" in unknown
    assert unknown.endswith("Does id: globalId of the registry fit the serializer's apicurio.registry.use-id?")
    for value in (b"", b"\0", b"\0" * 5, b"{}"):
        assert "names no schema" in str(rule.fault(record(value)))
    wrong = ((b"apicurio.value.globalId", b"\x01"),)
    assert "does not contain an id of eight bytes" in str(rule.fault(record(GOOD, headers=wrong)))


FILE = """syntax = "proto3"; package shop;
message Outer {
  map<string, string> m = 1;
  message Inner { string x = 1; }
}
message Other { int64 y = 1; }"""


@pytest.mark.long
@pytest.mark.parametrize("with_headers", [False, True], ids=["before the data", "in headers"])
def test_accepts_protobuf_written_by_the_apicurio_serializer(apicurio: Apicurio, with_headers: bool) -> None:
    topic = f"proto-headers-{with_headers}".lower()
    file = FileDescriptorSet.FromString(descriptor_set_of("shop.proto", FILE, {})).file[-1].SerializeToString()
    messages = [("Outer", b"\x0a\x06\x0a\x01k\x12\x01v"), ("Other", b"\x08\x07")]
    rule = rule_for(apicurio)

    written = apicurio_protobuf(native_url(apicurio), topic, file, messages, with_headers)

    for (_, data), (value, headers) in zip(messages, written, strict=True):
        assert value.endswith(data)
        assert rule.fault(record(value, topic=topic, headers=headers)) is None
        words = str(rule.fault(record(value + b"\xff", topic=topic, headers=headers)))
        assert "does not match its Protobuf schema: it cannot be read as shop." in words
    value, headers = written[0]
    value = value.replace(b"Outer", b"Wrong")
    headers = tuple((name, b"Wrong" if text == b"Outer" else text) for name, text in headers)
    assert "is not that of a message" in str(rule.fault(record(value, topic=topic, headers=headers)))


def test_json_schema_and_protobuf_records_are_validated_by_native_ids(
    apicurio: Apicurio, registered_schema_ids: dict[str, Any]
) -> None:
    of_json = register_artifact(apicurio, "json-value", '{"type": "object"}', "JSON")["globalId"].to_bytes(8)
    of_protobuf = register_artifact(apicurio, "proto-value", 'syntax = "proto3"; message M { }', "PROTOBUF")[
        "globalId"
    ].to_bytes(8)
    rule = rule_for(apicurio)

    assert rule.fault(record(b"\0" + of_json + b"{}", topic="json")) is None
    assert "does not match its JSON Schema" in str(rule.fault(record(b"\0" + of_json + b"1", topic="json")))
    assert rule.fault(record(b"\0" + of_protobuf + b"\x03\x0a\x01M", topic="proto")) is None
    section = Registry(url=native_url(apicurio), type="apicurio")
    surveyed = RegistrySurvey("main", section, MetSubjects(all_subjects=True)).compile_new_schemas(compile_inline)
    assert "proto-value" not in {each.subject for each in surveyed.unusable}
    assert surveyed.usable >= 5
    assert surveyed.is_complete


def test_registry_url_of_another_api_raises_an_outage_with_advice(apicurio: Apicurio) -> None:
    section = Registry(url=f"http://127.0.0.1:{apicurio.port}/apis/nothing", type="apicurio")
    rule = HasRegisteredSchema(Side.VALUE, Registries().by_name({"main": section})["main"])

    with pytest.raises(Outage, match="set url to the native API"):
        rule.fault(record(b"\0" + bytes(7) + b"\x01" + GOOD))
