"""Topic settings from the cluster: a change on the broker takes effect after the next refresh."""

import time
from collections.abc import Iterator
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

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

HOUR = 3_600_000
INVALID_TIMESTAMP, INVALID_RECORD, TOO_LARGE, UNKNOWN_TOPIC = 32, 87, 10, 3


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def alter(bootstrap: str, topic: str, **settings: str) -> None:
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


def entry_for(proxy: ProxyProcess, topic: str, *records: Rec) -> Any:
    """Send the records in an lz4 batch and return its entry of the response."""
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        response = client.produce(9, [topic_data(topic, (0, batch(records, LZ4)))])
    assert isinstance(response, dict)
    return response["responses"][0]["partition_responses"][0]


def rejected_by_us(proxy: ProxyProcess, topic: str) -> int:
    return len(proxy.violations_of(topic))


def test_the_first_batch_is_validated_by_the_brokers_settings(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    bounded = create_topic(kafka_bootstrap, {"message.timestamp.after.max.ms": str(HOUR)})
    compacted = create_topic(kafka_bootstrap, {"cleanup.policy": "compact"} | UNVALIDATED)
    append_time = create_topic(kafka_bootstrap, {"message.timestamp.type": "LogAppendTime"})
    small = create_topic(kafka_bootstrap, {"max.message.bytes": "500"})

    assert entry_for(proxy, bounded, Rec(now_ms() + 2 * HOUR))["error_code"] == INVALID_TIMESTAMP
    assert entry_for(proxy, compacted, Rec(now_ms(), key=None))["error_code"] == INVALID_RECORD
    assert entry_for(proxy, append_time, Rec(now_ms() * 1_000_000))["error_code"] == 0
    assert (
        entry_for(proxy, small, *(Rec(now_ms() - i * 7919, value=bytes(range(i, i + 90))) for i in range(40)))[
            "error_code"
        ]
        == TOO_LARGE
    )

    for topic in (bounded, compacted, small):
        eventually(lambda topic=topic: rejected_by_us(proxy, topic) == 1, what=f"a rejection by the proxy for {topic}")
    assert rejected_by_us(proxy, append_time) == 0


def test_a_change_on_the_broker_takes_effect_soon(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    ahead = Rec(now_ms() + 2 * HOUR)
    assert entry_for(proxy, topic, ahead)["error_code"] == 0

    alter(kafka_bootstrap, topic, message_timestamp_after_max_ms=str(HOUR))
    response_until(proxy, topic, "timestamp too far ahead", ahead)

    alter(kafka_bootstrap, topic, message_timestamp_type="LogAppendTime")
    eventually(lambda: entry_for(proxy, topic, ahead)["error_code"] == 0, what="log append time")

    alter(kafka_bootstrap, topic, cleanup_policy="compact")
    response_until(proxy, topic, "null key on a compacted topic", Rec(now_ms(), key=None))


def response_until(proxy: ProxyProcess, topic: str, reason: str, record: Rec) -> None:
    """Send until the proxy itself rejects the record for that reason; before that the broker may reject it."""

    def rejected() -> bool:
        entry_for(proxy, topic, record)
        return reason in {event["reason"] for event in proxy.violations_of(topic)}

    eventually(rejected, what="a rejection by the proxy")


def test_the_stricter_of_broker_and_file_wins(kafka_bootstrap: str, tmp_path: Path) -> None:
    loose = create_topic(kafka_bootstrap, UNVALIDATED)
    strict = create_topic(kafka_bootstrap, {"message.timestamp.after.max.ms": "60000"})
    process = ProxyProcess(tmp_path, kafka_bootstrap, {"defaults": {"message.timestamp.after.max.ms": HOUR}})
    try:
        process.start()
        by_file = entry_for(process, loose, Rec(now_ms() + 2 * HOUR))
        by_broker = entry_for(process, strict, Rec(now_ms() + HOUR // 2))
        eventually(lambda: rejected_by_us(process, loose) + rejected_by_us(process, strict) == 2)
    finally:
        process.stop()

    assert [by_file["error_code"], by_broker["error_code"]] == [INVALID_TIMESTAMP] * 2


def test_an_impossible_topic_name_does_not_break_later_lookups(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """Regression: a topic name of 40,000 letters made every later lookup fail."""
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    ahead = Rec(now_ms() + 2 * HOUR)
    assert entry_for(proxy, topic, ahead)["error_code"] == 0
    for name in ("x" * 30_000, "a b", ".."):
        assert entry_for(proxy, name, ahead)["error_code"] == UNKNOWN_TOPIC

    alter(kafka_bootstrap, topic, message_timestamp_after_max_ms=str(HOUR))

    response_until(proxy, topic, "timestamp too far ahead", ahead)


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

        assert entry_for(process, topic, Rec(now_ms()))["error_code"] == 0
        assert entry_for(process, topic, Rec(now_ms() + 2 * HOUR))["error_code"] == INVALID_TIMESTAMP
        process.wait_for_line("topic settings cannot be read, the configuration applies")
        before = process.log().count("topic settings cannot be read, the configuration applies")
        other = create_topic(kafka.bootstrap, UNVALIDATED)
        assert entry_for(process, other, Rec(now_ms()))["error_code"] == 0
    finally:
        process.stop()
        kafka.stop()

    assert before == 1
    process.wait_for_line(f"topic {topic}: TOPIC_AUTHORIZATION_FAILED (29)")
