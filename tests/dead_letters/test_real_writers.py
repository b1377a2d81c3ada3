"""Letters that the real writers wrote are read without a loss or a wrong field.

The expected origin, key, value and headers are those of the record at which the writer failed. The expected error is
the one that the writer's program reports in another way than in its headers. With SLUICEGATE_THOROUGH, each topic has
about 100,000 records.
"""

import json
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Rule, RuleKind, RuleMode, RuleSet, Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor
from confluent_kafka.schema_registry.rules.dlq.dlq_action import DlqAction
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

from sluicegate.dead_letters import Headers, LetterFormat, Obstacle
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.broker.ports import free_ports
from tests.dead_letters import desk
from tests.dead_letters.desk import run_json
from tests.dead_letters.originals import (
    HEADERS,
    PARTITIONS,
    TIME,
    Error,
    Fields,
    Original,
    Place,
    expected_letters,
    letters_of,
    write_originals,
)
from tests.dead_letters.writer_programs import PROGRAMS, jars_of, lines_of, running, text_in
from tests.oracle.java_program import java_command
from tests.oracle.kafka_java import KAFKA_NEWEST, kafka_folder

pytestmark = pytest.mark.long

COUNT = 100_020 if os.environ.get("SLUICEGATE_THOROUGH") else 1200
KINDS = 12
DELIVERIES = 5
RETRY_TOPIC_ATTEMPTS = 3
RELEASED = "Offset delivery count exceeded the threshold."
REJECTED = "Offset rejected by client."
# The messages of Kafka 4.3.1's JsonConverter and NumberConverter.
NOT_JSON = "Converting byte[] to Kafka Connect data failed due to serialization error: "
NOT_AN_INTEGER = "Failed to deserialize integer: "
DATA_EXCEPTION = "org.apache.kafka.connect.errors.DataException"


def numbers() -> Iterator[Original]:
    """Yield records for programs that read Integer keys and Long values."""
    for i in range(COUNT):
        key: bytes | None = struct.pack(">i", i)
        value: bytes | None = struct.pack(">q", i)
        match i % KINDS:
            case 0:
                value = f"{i:09}".encode()  # not eight bytes
            case 1:
                key = f"{i:03}".encode()[:3]  # not four bytes
            case 2:
                value = None
            case 3:
                key = None
            case 4:
                value = struct.pack(">q", -1 - 4 * i)
        yield Original(TIME + 7 * i, key, value, HEADERS[i % len(HEADERS)])


def new_topic(bootstrap: str, name: str) -> str:
    """Create a topic that keeps records of any age."""
    return desk.new_topic(bootstrap, name, PARTITIONS, retention_ms="-1")


def listed(bootstrap: str, dead: str) -> tuple[int, int]:
    """Return the number of records in the list of topics, and the number of letters in the groups."""
    (topic,) = run_json("list", "--bootstrap", bootstrap, "--topic", dead)
    groups = run_json("show", dead, "--bootstrap", bootstrap)
    assert groups["not_letters"] == 0
    return topic["records"], sum(group["letters"] for group in groups["groups"])


def test_reads_letters_written_by_kafka_streams(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic, dead, results = (new_topic(kafka_bootstrap, name) for name in ("orders", "dead", "results"))
    originals = write_originals(kafka_bootstrap, topic, numbers())
    failures = COUNT - COUNT // KINDS * 3

    lines = lines_of(
        jars_of("kafka"), "StreamsLetters", kafka_bootstrap, topic, dead, results, str(failures), str(tmp_path)
    )
    errors = _errors_in(lines)
    found = letters_of(kafka_bootstrap, dead, failures, LetterFormat.STREAMS)

    assert len(errors) == failures
    assert found == expected_letters(topic, originals, errors, None)
    assert listed(kafka_bootstrap, dead) == (failures, failures)


def test_reads_letters_written_by_spring(kafka_bootstrap: str) -> None:
    topic, dead = new_topic(kafka_bootstrap, "orders"), new_topic(kafka_bootstrap, "dead")
    originals = write_originals(kafka_bootstrap, topic, numbers())
    failures = COUNT - COUNT // KINDS * 4

    lines = lines_of(jars_of("spring"), "SpringLetters", kafka_bootstrap, topic, dead, str(failures))
    errors = {place: _spring_error(error) for place, error in _errors_in(lines).items()}
    found = letters_of(kafka_bootstrap, dead, failures, LetterFormat.SPRING)

    assert len(errors) == failures
    assert found == expected_letters(topic, originals, errors, "packers")
    assert listed(kafka_bootstrap, dead) == (failures, failures)


def test_reads_letters_written_after_spring_retry_topics(kafka_bootstrap: str) -> None:
    topic = new_topic(kafka_bootstrap, "orders")
    records = [
        Original(TIME + 7 * i, f"{i}".encode() if i % 3 else None, f"{i}".encode(), HEADERS[i % len(HEADERS)])
        for i in range(COUNT // KINDS)
    ]
    originals = write_originals(kafka_bootstrap, topic, records)

    lines = lines_of(jars_of("spring"), "SpringRetryTopics", kafka_bootstrap, topic, str(len(records)))
    found = letters_of(kafka_bootstrap, f"{topic}-dlt", len(records), LetterFormat.SPRING)

    assert sorted(int(words[1]) for words in lines) == list(range(len(records)))
    errors = {
        place: Error(
            "java.lang.IllegalStateException",
            f"Listener failed; order {(record.value or b'').decode()} has no lines",
            attempts=RETRY_TOPIC_ATTEMPTS,
        )
        for place, record in originals.items()
    }
    assert found == expected_letters(topic, originals, errors, "packers")


def connect_records() -> Iterator[Original]:
    """Yield records for the connector `rejects`: Integer keys, texts as values, and headers in JSON."""
    for i in range(COUNT):
        kind = ("transformation", "sink", "key", "header", "good")[i % 5]
        key = struct.pack(">i", i) if kind != "key" else b"key"
        headers: Headers = ((b"trace", b"7"), (b"trace", b"8")) if kind != "header" else ((b"trace", b"{7"),)
        yield Original(TIME + 7 * i, key, f"{kind} {i}".encode(), headers)


def connector(folder: Path, name: str, topic: str, dead: str, **settings: str) -> str:
    """Write the configuration of a connector and return its path."""
    every = {
        "name": name,
        "topics": topic,
        "tasks.max": "1",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    file = folder / f"{name}.properties"
    lines = {**every, **{key.replace("_", "."): value for key, value in settings.items()}}
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return str(file)


def test_reads_letters_written_by_kafka_connect(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic, dead = new_topic(kafka_bootstrap, "orders"), new_topic(kafka_bootstrap, "dead")
    lines, dead_lines = new_topic(kafka_bootstrap, "lines"), new_topic(kafka_bootstrap, "dead")
    originals = write_originals(kafka_bootstrap, topic, connect_records())
    failing = [record for record in numbers() if record.value is not None]  # null is valid without a schema
    original_lines = write_originals(
        kafka_bootstrap, lines, [record._replace(value=b"{" + (record.value or b"")) for record in failing]
    )
    worker = tmp_path / "worker.properties"
    worker.write_text(
        f"bootstrap.servers={kafka_bootstrap}\nlisteners=http://127.0.0.1:{free_ports(1)}\n"
        f"offset.storage.file.filename={tmp_path / 'offsets'}\nplugin.discovery=only_scan\n"
        "key.converter=org.apache.kafka.connect.converters.ByteArrayConverter\n"
        "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
        "consumer.max.poll.records=10000\noffset.flush.interval.ms=1000\n"
    )
    rejects = connector(
        tmp_path,
        "rejects",
        topic,
        dead,
        connector_class="ConnectLetters",
        transforms="reject",
        transforms_reject_type="ConnectLetters$Rejecting",
        key_converter="org.apache.kafka.connect.converters.IntegerConverter",
        value_converter="org.apache.kafka.connect.storage.StringConverter",
        header_converter="org.apache.kafka.connect.json.JsonConverter",
        header_converter_schemas_enable="false",
    )
    to_file = connector(
        tmp_path, "to-file", lines, dead_lines, connector_class="FileStreamSink", file=str(tmp_path / "sink.txt")
    )
    command = java_command(jars_of("kafka"), str(PROGRAMS / "ConnectLetters.java"))
    log = tmp_path / "connect.log"
    failures = COUNT - COUNT // 5

    with running([*command[:-1], "org.apache.kafka.connect.cli.ConnectStandalone", str(worker), rejects, to_file], log):
        found = letters_of(kafka_bootstrap, dead, failures, LetterFormat.CONNECT)
        found_lines = letters_of(kafka_bootstrap, dead_lines, len(original_lines), LetterFormat.CONNECT)

    reported = {
        f"{words[1]} {words[2]}".encode(): Error(words[4], text_in(words[5]), words[3])
        for words in map(str.split, log.read_text().splitlines())
        if words and words[0] == "error"
    }
    errors = {place: error for place, record in originals.items() if (error := _connect_error(record, reported))}
    assert len(errors) == failures
    assert found == expected_letters(topic, originals, errors, "rejects")
    not_json = dict.fromkeys(original_lines, Error(DATA_EXCEPTION, NOT_JSON, "VALUE_CONVERTER"))
    assert found_lines == expected_letters(lines, original_lines, not_json, "to-file")
    assert listed(kafka_bootstrap, dead) == (failures, failures)


@pytest.fixture(scope="module")
def share_groups_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    yield from run_kafka(Kafka(KAFKA_NEWEST, tmp_path_factory.mktemp("share-groups")))


def shared_records() -> Iterator[Original]:
    """Yield records that the program rejects, releases or accepts, by the first byte of the value."""
    for i in range(COUNT):
        value = f"{'rxg'[i % 3]} {i}".encode() if i % 7 else None
        key = f"{i}".encode() if value is None or i % 2 else None
        yield Original(TIME + 7 * i, key, value, HEADERS[i % len(HEADERS)])


@pytest.mark.parametrize("is_copied", [True, False])
def test_reads_letters_written_by_share_groups(share_groups_broker: Kafka, is_copied: bool) -> None:
    bootstrap = share_groups_broker.bootstrap
    topic = new_topic(bootstrap, "orders")
    dead = desk.new_topic(bootstrap, "dlq.dead", PARTITIONS, errors_deadletterqueue_group_enable="true")
    originals = write_originals(bootstrap, topic, shared_records())
    failures = sum(1 for record in originals.values() if not (record.value or b"r").startswith(b"g"))
    group = f"packers-{topic}"

    lines = lines_of(
        kafka_folder(KAFKA_NEWEST),
        "ShareGroupLetters",
        *(bootstrap, topic, group, str(failures), str(DELIVERIES), dead, str(is_copied).lower()),
    )
    found = letters_of(bootstrap, dead, failures, LetterFormat.SHARE_GROUP)

    errors = {(int(words[1]), int(words[2])): _share_group_error(int(words[3])) for words in lines}
    expected = expected_letters(topic, originals, errors, group)
    assert found == [
        replace(each, timestamp=None, headers=())
        if is_copied
        else replace(each, timestamp=None, headers=(), key=None, value=None, obstacle=Obstacle.NOT_COPIED)
        for each in expected
    ]


def _share_group_error(deliveries: int) -> Error:
    """Return the error, which has no class. The texts are those of Kafka 4.4.0's SharePartition."""
    return Error("", RELEASED if deliveries == DELIVERIES else REJECTED, attempts=deliveries)


def _connect_error(record: Original, reported: Mapping[bytes, Error]) -> Error | None:
    """Return the error that the program reports, or that of a converter of Kafka."""
    value = record.value or b""
    if value.startswith(b"key"):
        return Error(DATA_EXCEPTION, NOT_AN_INTEGER, "KEY_CONVERTER")
    if value.startswith(b"header"):
        return Error(DATA_EXCEPTION, NOT_JSON, "HEADER_CONVERTER")
    return reported.get(value)


def _spring_error(error: Error) -> Error:
    """Return the error of a listener with the text that Spring puts before it."""
    is_of_listener = not error.name.startswith("org.springframework.")
    return replace(error, text=f"Listener failed; {error.text}") if is_of_listener else error


def _errors_in(lines: list[list[str]]) -> dict[Place, Error]:
    return {
        (int(words[1]), int(words[2])): Error(
            words[3], text_in(words[4]), attempts=int(words[5]) if len(words) > 5 else None
        )
        for words in lines
        if words and words[0] == "error"
    }


@pytest.mark.parametrize("mode", [RuleMode.READ, RuleMode.WRITE])
def test_reads_letters_written_by_confluent_rules(kafka_bootstrap: str, mode: RuleMode) -> None:
    dead = new_topic(kafka_bootstrap, "dead")
    registry = SchemaRegistryClient.new_client({"url": "mock://"})
    rule = Rule("is-paid", None, RuleKind.CONDITION, mode, "CEL", [], None, "message.n % 5 == 0", None, "DLQ", False)
    registry.register_schema("orders-key", Schema('{"type": "string"}', "JSON"))
    registry.register_schema("orders-value", Schema('{"type": "object"}', "JSON", [], None, RuleSet([], [rule])))
    action = DlqAction({"dlq.topic": dead, "bootstrap.servers": kafka_bootstrap, "linger.ms": 20})
    rules = RuleRegistry()
    rules.register_executor(CelExecutor())
    rules.register_action(action)
    serializer = JSONSerializer(
        None, registry, conf={"auto.register.schemas": False, "use.latest.version": True}, rule_registry=rules
    )
    reader = JSONDeserializer(None, schema_registry_client=registry, rule_registry=rules)
    expected = []
    for i in range(COUNT):
        headers = HEADERS[i % len(HEADERS)]
        of_key = SerializationContext("orders", MessageField.KEY)
        of_value = SerializationContext(
            "orders", MessageField.VALUE, [(name.decode(), value) for name, value in headers]
        )
        key_text, order = (f"key {i}" if i % 3 else None), {"n": i}
        key = serializer(key_text, of_key)
        value = _failed_rule(lambda order=order, of_value=of_value: serializer(order, of_value))
        written_key, written_value = key_text and key_text.encode(), json.dumps(order).encode()
        if value is not None and mode is RuleMode.READ:
            reader(key, of_key)
            if _failed_rule(lambda value=value, of_value=of_value: reader(value, of_value)) is not None:
                continue
            written_key, written_value = key, value
        elif value is not None:
            continue
        error = Error("", "Rule expr failed: message.n % 5 == 0", mode.value, rules=("is-paid",))
        obstacle = None if mode is RuleMode.READ else Obstacle.NOT_ORIGINAL
        expected.append(
            Fields("orders", None, None, None, written_key, written_value, headers, error, "orders-value", obstacle)
        )
    action.close()

    assert len(expected) == COUNT - COUNT // 5
    found = letters_of(kafka_bootstrap, dead, len(expected), LetterFormat.CONFLUENT_RULE)
    assert sorted(found, key=_value_of) == sorted(expected, key=_value_of)
    assert listed(kafka_bootstrap, dead) == (len(expected), len(expected))


def _value_of(fields: Fields) -> bytes:
    return fields.value or b""


def _failed_rule(convert: Callable[[], object]) -> Any:
    """Return the converted value; None if a rule failed."""
    try:
        return convert()
    except SerializationError:
        return None
