"""Topic settings read from the cluster: what changes on the broker while the proxy runs counts from the next look."""

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
    """Change a topic on the broker, past the proxy; an underscore stands for a dot."""
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
    """The entry of an answer to a batch of these, lz4 so that the broker alone would not look inside twice."""
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        response = client.produce(9, [topic_data(topic, (0, batch(records, LZ4)))])
    assert isinstance(response, dict)
    return response["responses"][0]["partition_responses"][0]


def rejected_by_us(proxy: ProxyProcess, topic: str) -> int:
    return len(proxy.violations_of(topic))


def test_the_first_batch_is_validated_by_what_the_broker_has_set(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
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
        eventually(lambda topic=topic: rejected_by_us(proxy, topic) == 1, what=f"our own rejection for {topic}")  # type: ignore[misc]
    assert rejected_by_us(proxy, append_time) == 0


def test_what_changes_on_the_broker_counts_soon_after(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    ahead = Rec(now_ms() + 2 * HOUR)
    assert entry_for(proxy, topic, ahead)["error_code"] == 0

    alter(kafka_bootstrap, topic, message_timestamp_after_max_ms=str(HOUR))
    response_until(proxy, topic, "timestamp too far ahead", ahead)

    alter(kafka_bootstrap, topic, message_timestamp_type="LogAppendTime")
    eventually(lambda: entry_for(proxy, topic, ahead)["error_code"] == 0, what="the broker's own time")

    alter(kafka_bootstrap, topic, cleanup_policy="compact")
    response_until(proxy, topic, "null key on a compacted topic", Rec(now_ms(), key=None))


def response_until(proxy: ProxyProcess, topic: str, reason: str, record: Rec) -> None:
    """Send until the proxy itself rejects for that reason; the broker may have rejected before."""

    def rejected() -> bool:
        entry_for(proxy, topic, record)
        return reason in {event["reason"] for event in proxy.violations_of(topic)}

    eventually(rejected, what="a rejection of our own")


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


def test_a_name_that_no_broker_has_spoils_nothing(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """A topic of 40,000 letters made every later question fail, so that no change was noticed any more."""
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    ahead = Rec(now_ms() + 2 * HOUR)
    assert entry_for(proxy, topic, ahead)["error_code"] == 0
    for name in ("x" * 30_000, "a b", ".."):
        assert entry_for(proxy, name, ahead)["error_code"] == UNKNOWN_TOPIC

    alter(kafka_bootstrap, topic, message_timestamp_after_max_ms=str(HOUR))

    response_until(proxy, topic, "timestamp too far ahead", ahead)


def test_what_may_not_be_read_is_said_once_and_the_file_holds(tmp_path: Path) -> None:
    """A broker that tells nobody what topics are set to but its administrator."""
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
        process.wait_for_line("topic settings cannot be read, going on with the file")
        before = process.log().count("topic settings cannot be read, going on with the file")
        other = create_topic(kafka.bootstrap, UNVALIDATED)
        assert entry_for(process, other, Rec(now_ms()))["error_code"] == 0
    finally:
        process.stop()
        kafka.stop()

    assert before == 1
    process.wait_for_line(f"topic {topic}: TOPIC_AUTHORIZATION_FAILED (29)")
