"""Records that Confluent's serializers for JavaScript and kafkajs write get the expected verdicts from a live proxy.

Confluent's serializers encrypt fields and payloads with their local key service. No permanent fault counts as an
outage.
"""

import json
import shutil
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from tests.broker.proxy_process import ProxyProcess
from tests.clients.programs import BUILT
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.oracle.kafka_java import ROOT
from tests.registry.stand_in import StandIn, http_response

pytestmark = pytest.mark.long

PROGRAM = ROOT / "tests/registry/javascript/serialize.js"
MODULES = BUILT / "serializers" / "node_modules"
JSON = json.dumps(
    {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "amount": {"type": "number"},
            "email": {"type": "string", "format": "email", "confluent:tags": ["PII"]},
        },
        "required": ["id", "amount", "email"],
        "additionalProperties": False,
    }
)
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "amount", "type": "double"},
            {"name": "email", "type": "string", "confluent:tags": ["PII"]},
        ],
    }
)
PROTOBUF = """syntax = "proto3"; package shop; import "confluent/meta.proto";
message Order { string id = 1; double amount = 2; string email = 3 [(confluent.field_meta).tags = "PII"]; }"""
UNTAGGED = PROTOBUF.replace('import "confluent/meta.proto";', "").replace(' [(confluent.field_meta).tags = "PII"]', "")
TEXTS = {"AVRO": AVRO, "JSON": JSON, "PROTOBUF": PROTOBUF}
GOOD = {"id": "o-1", "amount": 5.5, "email": "a@example.org"}
BAD = {**GOOD, "amount": -1.5}
INVALID_RECORD = 87
NOT_POSITIVE, UNKNOWN_ID, NO_INDEXES = "condition positive", "registry main does not have", "message_indexes: optional"
CUT = {
    "AVRO": "does not match its Avro schema",
    "JSON": "is not JSON",
    "PROTOBUF": "does not match its Protobuf schema",
}

POSITIVE = {"name": "positive", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "message.amount > 0.0"}


def _encryption(type_: str, **more: Any) -> dict[str, Any]:
    keys = {"encrypt.kek.name": "k", "encrypt.kms.type": "local-kms", "encrypt.kms.key.id": "mykey"}
    return {"name": "hide", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": type_, "params": keys, **more}


FIELDS = {"domainRules": [_encryption("ENCRYPT", tags=["PII"])]}
PAYLOAD = {"encodingRules": [_encryption("ENCRYPT_PAYLOAD")]}


@dataclass(frozen=True)
class Case:
    """A value that a serializer writes. `rule_set`: the rules that it applies; the registry also has POSITIVE.

    `rejected`: a part of the reason if the proxy rejects the record; `registry`: the one of the topic's rule.
    """

    writer: str
    language: str
    value: dict[str, Any]
    rejected: str = ""
    rule_set: dict[str, Any] | None = None
    in_header: bool = False
    is_known: bool = True
    is_cut: bool = False
    registry: str = "main"

    @property
    def is_encrypted(self) -> bool:
        return self.rule_set is not None

    def response(self) -> dict[str, Any]:
        """Return the registry's response about the schema."""
        rules = self.rule_set or {}
        rule_set = {**rules, "domainRules": [POSITIVE, *rules.get("domainRules", [])]}
        text = UNTAGGED if self.writer == "kafkajs" and self.language == "PROTOBUF" else self._text()
        return {"schema": text, "schemaType": self.language, "ruleSet": rule_set}

    def _text(self) -> str:
        """Return the text that Confluent's client for JavaScript registers, a descriptor for Protobuf."""
        if self.language != "PROTOBUF":
            return TEXTS[self.language]
        files = FileDescriptorSet.FromString(descriptor_set_of("file.proto", PROTOBUF, {}))
        return b64encode(files.file[-1].SerializeToString()).decode()

    def request(self, schema_id: int) -> dict[str, Any]:
        """Return what the program in JavaScript reads."""
        return {
            "writer": self.writer,
            "id": schema_id,
            "language": self.language,
            "schema": self._text(),
            "ruleSet": self.rule_set,
            "inHeader": self.in_header,
            "topic": "orders",
            "value": self.value,
            "message": "shop.Order",
            "descriptors": b64encode(descriptor_set_of("file.proto", PROTOBUF, {})).decode(),
        }


def _cases_of(language: str) -> list[Case]:
    return [
        Case("confluent", language, GOOD),
        Case("confluent", language, BAD, NOT_POSITIVE),
        Case("confluent", language, GOOD, rule_set=FIELDS),
        Case("confluent", language, BAD, NOT_POSITIVE, rule_set=FIELDS),
        Case("confluent", language, BAD, rule_set=PAYLOAD),  # the proxy cannot read the amount
        Case("confluent", language, GOOD, in_header=True),
        Case("confluent", language, BAD, NOT_POSITIVE, in_header=True),
        Case("confluent", language, GOOD, in_header=True, rule_set=PAYLOAD),
        Case("confluent", language, GOOD, UNKNOWN_ID, is_known=False),
        Case("confluent", language, GOOD, CUT[language], is_cut=True),
        Case("kafkajs", language, GOOD, registry="kafkajs"),
        Case("kafkajs", language, BAD, NOT_POSITIVE, registry="kafkajs"),
    ]


CASES = [case for language in TEXTS for case in _cases_of(language)]
CASES += [Case("kafkajs", "PROTOBUF", GOOD, NO_INDEXES)]


class CasesRegistry:
    """A registry that has the schemas of all cases, by id and by the GUIDs that the client's registry has made."""

    def __init__(self) -> None:
        self._by_path = {
            f"/schemas/ids/{schema_id}": case.response() for schema_id, case in enumerate(CASES, 1) if case.is_known
        }
        self.here = StandIn(self._respond)

    def name_guid(self, guid: str, schema_id: int) -> None:
        self._by_path[f"/schemas/guids/{guid}"] = self._by_path[f"/schemas/ids/{schema_id}"]

    def _respond(self, client: socket, head: bytes) -> bool:
        found = self._by_path.get(head.split(b" ", 2)[1].decode().partition("?")[0])
        body = json.dumps({"error_code": 40403} if found is None else found).encode()
        client.sendall(http_response("404 Not Found" if found is None else "200 OK", body))
        return True


@pytest.fixture(scope="module")
def registry() -> Iterator[CasesRegistry]:
    made = CasesRegistry()
    with made.here:
        yield made


@pytest.fixture(scope="module")
def written(registry: CasesRegistry) -> list[dict[str, Any]]:
    """Return the record of each case, as the serializers for JavaScript write it."""
    node = shutil.which("node")
    if node is None or not MODULES.exists():
        pytest.skip("Node.js and the serializers are not installed (make clients)")
    requests = {"registry": registry.here.url, "cases": [case.request(n) for n, case in enumerate(CASES, 1)]}
    done = subprocess.run(
        ["env", f"NODE_PATH={MODULES}", node, str(PROGRAM)],
        input=json.dumps(requests),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    records: list[dict[str, Any]] = json.loads(done.stdout)
    for schema_id, (case, one) in enumerate(zip(CASES, records, strict=True), 1):
        if case.in_header:
            registry.name_guid(one["guid"], schema_id)
    return records


def _rule(registry: str) -> dict[str, Any]:
    schema = {"registry": registry, "subject": "any", "conditions": True}
    return {"name": "body", "value": {"schema": schema}}


@pytest.fixture
def proxy(kafka_bootstrap: str, registry: CasesRegistry, tmp_path: Path) -> Iterator[ProxyProcess]:
    url = registry.here.url
    made = ProxyProcess(
        tmp_path,
        kafka_bootstrap,
        {
            "defaults": DEFAULTS,
            "topics": [{"match": f"{name}-*", "rules": [_rule(name)]} for name in ("main", "kafkajs")],
            "registries": {"main": {"url": url}, "kafkajs": {"url": url, "message_indexes": "optional"}},
        },
    )
    try:
        yield made.start()
    finally:
        made.stop()


def _code_of(producer: Producer, topic: str, value: bytes, headers: list[tuple[str, bytes]]) -> int:
    """Send a record alone in its batch, and return the code of the response."""
    codes: list[int] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        codes.append(0 if error is None else error.code())

    producer.produce(topic, value, b"k", headers=headers, on_delivery=delivered)
    assert producer.flush(60) == 0
    return codes[0]


def _stored(bootstrap: str, topic: str) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while (found := consumer.poll(30)) is not None and found.error() is None:
        values.append(found.value() or b"")
    consumer.close()
    return values


def test_records_of_serializers_for_javascript_are_validated_as_far_as_they_can_be_read(
    kafka_bootstrap: str, proxy: ProxyProcess, written: list[dict[str, Any]]
) -> None:
    topics = {name: create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix=name) for name in ("main", "kafkajs")}
    producer = Producer({"bootstrap.servers": proxy.bootstrap, "message.timeout.ms": 30_000})
    stored: dict[str, list[bytes]] = {topic: [] for topic in topics.values()}
    reasons: dict[str, list[Case]] = {topic: [] for topic in topics.values()}

    for case, one in zip(CASES, written, strict=True):
        topic, value = topics[case.registry], b64decode(one["value"])
        assert (b"example.org" in value) is not case.is_encrypted, case
        if case.is_cut:
            value = value[:-3]
        headers = [(name, b64decode(each)) for name, each in one["headers"].items()]
        assert bool(headers) is case.in_header, case
        assert _code_of(producer, topic, value, headers) == (INVALID_RECORD if case.rejected else 0), case
        if case.rejected:
            reasons[topic].append(case)
        else:
            stored[topic].append(value)

    for topic, cases in reasons.items():
        assert _stored(kafka_bootstrap, topic) == stored[topic]
        for case, event in zip(cases, proxy.wait_for_violations(topic, len(cases)), strict=True):
            assert case.rejected in json.dumps(event), case
    assert proxy.metric("sluicegate_registry_failures_total") == 0
    assert proxy.metric("sluicegate_internal_errors_total") == 0
    encrypted = sum(case.is_encrypted for case in CASES)
    assert proxy.metric("sluicegate_encrypted_records_total") == encrypted
