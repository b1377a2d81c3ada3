"""Topic settings come from the cluster: a change on the broker takes effect after the next refresh."""

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from sluicegate.config.loading import load_file
from sluicegate.protocol.records.writing import NewRecord, write_batch
from sluicegate.proxy.cli.try_record import validate_one
from sluicegate.proxy.cluster.topics import read_settings_now
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import COMMAND, ProxyProcess
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

HOUR = 3_600_000
INVALID_TIMESTAMP, INVALID_RECORD, TOO_LARGE, UNKNOWN_TOPIC = 32, 87, 10, 3


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def alter_topic(bootstrap: str, topic: str, **settings: str) -> None:
    """Change a topic's settings directly on the broker; in keyword names an underscore is a dot."""
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


@pytest.fixture
def proxy(kafka_bootstrap: str, tmp_path: Path) -> Iterator[ProxyProcess]:
    process = ProxyProcess(tmp_path, kafka_bootstrap)
    try:
        yield process.start()
    finally:
        process.stop()


def produce_entry(proxy: ProxyProcess, topic: str, *records: Rec) -> Any:
    """Send the records in an lz4 batch and return its entry of the response."""
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        response = client.produce(9, [topic_data(topic, (0, batch(records, LZ4)))])
    assert isinstance(response, dict)
    return response["responses"][0]["partition_responses"][0]


def rejected_by_the_proxy(proxy: ProxyProcess, topic: str) -> int:
    return len(proxy.violations_of(topic))


def test_the_first_batch_is_validated_by_the_brokers_settings(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    bounded = create_topic(kafka_bootstrap, {"message.timestamp.after.max.ms": str(HOUR)})
    compacted = create_topic(kafka_bootstrap, {"cleanup.policy": "compact"} | UNVALIDATED)
    append_time = create_topic(kafka_bootstrap, {"message.timestamp.type": "LogAppendTime"})
    small = create_topic(kafka_bootstrap, {"max.message.bytes": "500"})

    assert produce_entry(proxy, bounded, Rec(now_ms() + 2 * HOUR))["error_code"] == INVALID_TIMESTAMP
    assert produce_entry(proxy, compacted, Rec(now_ms(), key=None))["error_code"] == INVALID_RECORD
    assert produce_entry(proxy, append_time, Rec(now_ms() * 1_000_000))["error_code"] == 0
    assert (
        produce_entry(proxy, small, *(Rec(now_ms() - i * 7919, value=bytes(range(i, i + 90))) for i in range(40)))[
            "error_code"
        ]
        == TOO_LARGE
    )

    for topic in (bounded, compacted, small):
        eventually(
            lambda topic=topic: rejected_by_the_proxy(proxy, topic) == 1, what=f"a rejection by the proxy for {topic}"
        )
    assert rejected_by_the_proxy(proxy, append_time) == 0


def test_a_change_on_the_broker_takes_effect_soon(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    ahead = Rec(now_ms() + 2 * HOUR)
    assert produce_entry(proxy, topic, ahead)["error_code"] == 0

    alter_topic(kafka_bootstrap, topic, message_timestamp_after_max_ms=str(HOUR))
    response_until(proxy, topic, "timestamp_in_future", ahead)

    alter_topic(kafka_bootstrap, topic, message_timestamp_type="LogAppendTime")
    eventually(lambda: produce_entry(proxy, topic, ahead)["error_code"] == 0, what="log append time")

    alter_topic(kafka_bootstrap, topic, cleanup_policy="compact")
    response_until(proxy, topic, "null_key", Rec(now_ms(), key=None))


def response_until(proxy: ProxyProcess, topic: str, reason: str, record: Rec) -> None:
    """Send until the proxy itself rejects the record for that reason; before that the broker may reject it."""

    def has_rejected_record() -> bool:
        produce_entry(proxy, topic, record)
        return reason in {event["reason"] for event in proxy.violations_of(topic)}

    eventually(has_rejected_record, what="a rejection by the proxy")


def test_the_stricter_bound_of_broker_and_file_applies(kafka_bootstrap: str, tmp_path: Path) -> None:
    loose = create_topic(kafka_bootstrap, UNVALIDATED)
    strict = create_topic(kafka_bootstrap, {"message.timestamp.after.max.ms": "60000"})
    process = ProxyProcess(tmp_path, kafka_bootstrap, {"defaults": {"message.timestamp.after.max.ms": HOUR}})
    try:
        process.start()
        by_file = produce_entry(process, loose, Rec(now_ms() + 2 * HOUR))
        by_broker = produce_entry(process, strict, Rec(now_ms() + HOUR // 2))
        eventually(lambda: rejected_by_the_proxy(process, loose) + rejected_by_the_proxy(process, strict) == 2)
    finally:
        process.stop()

    assert [by_file["error_code"], by_broker["error_code"]] == [INVALID_TIMESTAMP] * 2


def test_an_impossible_topic_name_does_not_break_later_lookups(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """Regression: a topic name of 40,000 letters made every later lookup fail."""
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    ahead = Rec(now_ms() + 2 * HOUR)
    assert produce_entry(proxy, topic, ahead)["error_code"] == 0
    for name in ("x" * 30_000, "a b", ".."):
        assert produce_entry(proxy, name, ahead)["error_code"] == UNKNOWN_TOPIC

    alter_topic(kafka_bootstrap, topic, message_timestamp_after_max_ms=str(HOUR))

    response_until(proxy, topic, "timestamp_in_future", ahead)


@pytest.mark.long
def test_unreadable_settings_are_reported_once_and_the_file_applies(tmp_path: Path) -> None:
    """The broker shows topic settings only to its administrator."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:administrator",
        "allow.everyone.if.no.acl.found": "true",
    }
    kafka = Kafka(KAFKA_NEW, tmp_path / "kafka", settings=settings)
    (tmp_path / "kafka").mkdir()
    (tmp_path / "proxy").mkdir()
    process = ProxyProcess(tmp_path / "proxy", "127.0.0.1:1", {"defaults": {"message.timestamp.after.max.ms": HOUR}})
    try:
        kafka.start()
        topic = create_topic(kafka.bootstrap, UNVALIDATED)
        denied = AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            "User:ANONYMOUS",
            "*",
            AclOperation.DESCRIBE_CONFIGS,
            AclPermissionType.DENY,
        )
        allowed = AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            "User:ANONYMOUS",
            "*",
            AclOperation.WRITE,
            AclPermissionType.ALLOW,
        )
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for future in admin.create_acls([denied, allowed]).values():
            future.result(30)
        process.config["upstream"] |= {"bootstrap": [kafka.bootstrap]}
        process.start()

        assert produce_entry(process, topic, Rec(now_ms()))["error_code"] == 0
        assert produce_entry(process, topic, Rec(now_ms() + 2 * HOUR))["error_code"] == INVALID_TIMESTAMP
        process.wait_for_line("topic settings cannot be read, only the configuration applies")
        before = process.log().count("topic settings cannot be read, only the configuration applies")
        other = create_topic(kafka.bootstrap, UNVALIDATED)
        assert produce_entry(process, other, Rec(now_ms()))["error_code"] == 0
    finally:
        process.stop()
        kafka.stop()

    assert before == 1
    process.wait_for_line(f"topic {topic}: TOPIC_AUTHORIZATION_FAILED (29)")


MINUTE, DAY = 60_000, 86_400_000
BEFORE_MAX, AFTER_MAX, TYPE = (f"message.timestamp.{name}" for name in ("before.max.ms", "after.max.ms", "type"))
LOOSE = {AFTER_MAX: str(2 * HOUR)}
AHEAD, FAR = NewRecord(20 * MINUTE, b"k", b"v"), NewRecord(2 * HOUR, b"k", b"v")
OLD, KEYLESS, LARGE = NewRecord(-2 * DAY, b"k"), NewRecord(0, None, b"v"), NewRecord(0, b"k", bytes(600))
KEYED = {"rules": [{"name": "keyed", "key": {"required": True}}]}
CASES: list[tuple[dict[str, str], dict[str, Any], NewRecord, int]] = [
    ({AFTER_MAX: str(10 * MINUTE)}, {AFTER_MAX: "2h"}, AHEAD, INVALID_TIMESTAMP),
    ({AFTER_MAX: str(10 * MINUTE)}, {AFTER_MAX: "2h"}, NewRecord(5 * MINUTE), 0),
    (LOOSE, {AFTER_MAX: "10m"}, AHEAD, INVALID_TIMESTAMP),
    (LOOSE, {AFTER_MAX: "30m"}, AHEAD, 0),
    ({AFTER_MAX: str(10 * MINUTE)}, {}, AHEAD, INVALID_TIMESTAMP),
    ({}, {}, FAR, INVALID_TIMESTAMP),
    ({}, {AFTER_MAX: "1d"}, FAR, INVALID_TIMESTAMP),
    ({}, {}, AHEAD, 0),
    ({}, {TYPE: "LogAppendTime"}, FAR, INVALID_TIMESTAMP),
    ({TYPE: "CreateTime"}, {TYPE: "LogAppendTime"}, FAR, INVALID_TIMESTAMP),
    ({TYPE: "CreateTime"} | LOOSE, {TYPE: "LogAppendTime", AFTER_MAX: "10m"}, AHEAD, INVALID_TIMESTAMP),
    ({TYPE: "CreateTime"} | LOOSE, {TYPE: "LogAppendTime"}, AHEAD, 0),
    ({TYPE: "LogAppendTime"}, {TYPE: "LogAppendTime"}, FAR, 0),
    ({TYPE: "LogAppendTime"}, {TYPE: "CreateTime", AFTER_MAX: "10m"}, FAR, 0),
    ({TYPE: "LogAppendTime"}, {AFTER_MAX: "10m"}, FAR, 0),
    ({}, {BEFORE_MAX: "1d"}, OLD, INVALID_TIMESTAMP),
    ({BEFORE_MAX: str(DAY)}, {}, OLD, INVALID_TIMESTAMP),
    ({BEFORE_MAX: str(DAY)}, {BEFORE_MAX: "7d"}, OLD, INVALID_TIMESTAMP),
    ({BEFORE_MAX: str(7 * DAY)}, {BEFORE_MAX: "7d"}, OLD, 0),
    ({"cleanup.policy": "compact"}, {}, KEYLESS, INVALID_RECORD),
    ({"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}, KEYLESS, INVALID_RECORD),
    ({}, {"cleanup.policy": "compact"}, KEYLESS, INVALID_RECORD),
    ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact"}, AHEAD, 0),
    ({"max.message.bytes": "500"}, {}, LARGE, TOO_LARGE),
    ({"max.message.bytes": "500"}, {"max.message.bytes": 1000}, LARGE, TOO_LARGE),
    ({"max.message.bytes": "2000"}, {"max.message.bytes": 500}, LARGE, TOO_LARGE),
    ({"max.message.bytes": "2000"}, {"max.message.bytes": 1000}, LARGE, 0),
    (LOOSE, {AFTER_MAX: "10m", "mode": "observe"}, AHEAD, 0),
    (LOOSE, {AFTER_MAX: "10m", "checks": "none"}, AHEAD, 0),
    (LOOSE, {AFTER_MAX: "10m", "fix": {"timestamp": "clamp"}}, AHEAD, 0),
    ({AFTER_MAX: str(10 * MINUTE)}, {"fix": {"timestamp": "clamp"}}, AHEAD, 0),
    ({}, {"fix": {"timestamp": "clamp"}} | KEYED, NewRecord(2 * HOUR), INVALID_RECORD),
    ({}, KEYED, KEYLESS, INVALID_RECORD),
    ({}, KEYED, NewRecord(0, b"k"), 0),
    ({}, {"rehearse": {AFTER_MAX: ["1m"]}}, AHEAD, 0),
]
"""Settings of the cluster's topic, keys in the file, a record with its distance from now, and the error of a broker
with the stricter of both.
"""


def test_try_has_the_result_of_the_live_proxy(kafka_bootstrap: str, tmp_path: Path) -> None:
    topics = [create_topic(kafka_bootstrap, settings, 1) for settings, *_ in CASES]
    entries = [{"match": topic, **keys} for topic, (_, keys, *_) in zip(topics, CASES, strict=True)]
    process = ProxyProcess(tmp_path, kafka_bootstrap, {"topics": entries})
    found = []
    try:
        process.start()
        file = load_file(tmp_path / "sluicegate.yaml", {})
        with RawClient(f"127.0.0.1:{process.broker_port(1)}") as client:
            for topic, (*_, record, _) in zip(topics, CASES, strict=True):
                now = now_ms()
                sent = replace(record, timestamp=now + record.timestamp)
                tried = validate_one(topic, sent, file, now, partial(read_settings_now, file.config.upstream))
                response = client.produce(9, [topic_data(topic, (0, write_batch([sent])))])
                assert isinstance(response, dict)
                live = response["responses"][0]["partition_responses"][0]
                error = next((line for line in tried.lines if line.startswith("rejected: ")), None)
                message = None if error is None or error.endswith("without a message") else error.partition("): ")[2]
                found.append((live["error_code"], live["error_message"] == message, tried.is_forwarded))
        eventually(lambda: len(process.violations()) >= sum(1 for code, *_ in found if code), what="events")
    finally:
        process.stop()

    assert found == [(code, True, code == 0) for *_, code in CASES]
    events = {event["topic"]: event["bound"] for event in process.violations()}
    assert events[topics[0]] == {
        "key": AFTER_MAX,
        "value": 10 * MINUTE,
        "source": "cluster topic setting",
        "place": f"{tmp_path}/sluicegate.yaml:{_line_of(tmp_path, topics[0]) + 1}",
        "path": f"topics[0].{AFTER_MAX}",
        "configured": 2 * HOUR,
    }
    assert (events[topics[2]]["source"], events[topics[5]]["source"]) == ("configuration", "cluster default")


def _line_of(folder: Path, text: str) -> int:
    lines = (folder / "sluicegate.yaml").read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_the_api_and_explain_have_the_clusters_stricter_bound(
    kafka_bootstrap: str, tmp_path: Path, workers: int
) -> None:
    topic = create_topic(kafka_bootstrap, {AFTER_MAX: str(10 * MINUTE)})
    settings = {"defaults": {AFTER_MAX: 2 * HOUR}, "workers": workers}
    process = ProxyProcess(tmp_path, kafka_bootstrap, settings)
    try:
        process.start()
        policy = json.loads(process.get(f"/api/policy?topic={topic}")[1])
        explained = [COMMAND, "explain", str(tmp_path / "sluicegate.yaml"), topic]
        lines = subprocess.run(explained, capture_output=True, text=True, check=True).stdout.splitlines()
    finally:
        process.stop()

    (bound,) = (value for value in policy["effective"] if value["key"] == AFTER_MAX)
    assert (bound["value"], bound["source"], bound["configured"]) == (10 * MINUTE, "cluster topic setting", 2 * HOUR)
    assert policy["source"]["cluster_settings"] == "read"
    assert policy["lines"] == lines
    assert any("600000  (cluster topic setting, instead of 7200000 in " in line for line in lines)
