"""Dispositions that store bad records, under producers of each kind on a real broker."""

import time
import uuid
from collections.abc import Iterator

import confluent_kafka
import pytest

from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.clients import CLIENTS, IDEMPOTENT, TRANSACTIONAL, Client, Sent
from tests.integration.strict_broker import Kept, kept_in, topic_on
from tests.integration.topics import DEFAULTS

OK = "ok"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def proxy(strict_kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    topic_on(strict_kafka, 1, "copies")
    topics = [
        {"match": "copied-*", "mode": "observe", "quarantine": "copies"},
        {"match": "stuck-*", "mode": "observe", "quarantine": "copies-gone"},
    ]
    settings = {"defaults": DEFAULTS, "topics": topics}
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), strict_kafka.nodes[0].address, settings)
    try:
        yield process.start()
    finally:
        process.stop()


def new_topic(kafka: Kafka, kind: str) -> str:
    # The proxy's policy is stricter than the broker's own, so that the broker stores the bad records.
    return topic_on(kafka, 1, f"{kind}-{uuid.uuid4().hex[:8]}", message_timestamp_type="CreateTime")


def header_of(record: Kept, name: str) -> str | None:
    values = [value for key, value in record[2] if key == f"sluicegate.{name}"]
    return None if not values else (values[-1] or b"").decode()


@pytest.mark.long
@pytest.mark.parametrize("mode", [IDEMPOTENT, TRANSACTIONAL])
@pytest.mark.parametrize("kind", CLIENTS, ids=lambda each: each.name)
def test_bad_records_are_stored_and_copied(kind: Client, mode: str, strict_kafka: Kafka, proxy: ProxyProcess) -> None:
    topic = new_topic(strict_kafka, "copied")
    sent = [Sent("good", now_ms()), Sent("old", 5), Sent("fine", now_ms())]

    outcomes = kind.send(proxy.bootstrap, topic, sent, "lz4", mode)

    assert outcomes == [OK] * 3
    assert sorted(value or b"" for _, value, _ in kept_in(strict_kafka, topic, 3)) == [b"fine", b"good", b"old"]
    (copy,) = [each for each in kept_in(strict_kafka, "copies", 1) if header_of(each, "topic") == topic]
    assert (copy[1], header_of(copy, "copy"), header_of(copy, "reason")) == (b"old", "true", "timestamp too far behind")
    assert proxy.wait_for_violations(topic, 1)[0]["mode"] == "copy"


@pytest.mark.long
def test_an_idempotent_producer_retries_until_copies_can_be_written(strict_kafka: Kafka, proxy: ProxyProcess) -> None:
    topic = new_topic(strict_kafka, "stuck")
    outcomes: dict[int, object] = {}
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": proxy.bootstrap, "enable.idempotence": True, "batch.num.messages": 1, "linger.ms": 0}
    )
    for i in range(12):
        producer.produce(
            topic,
            f"{i}".encode(),
            partition=0,
            timestamp=5 if i % 3 == 2 else now_ms(),
            on_delivery=lambda error, _, i=i: outcomes.__setitem__(i, error),
        )
    producer.poll(0)
    until = time.monotonic() + 60
    while proxy.metric("sluicegate_quarantine_failures_total") == 0 and time.monotonic() < until:
        producer.poll(0.1)
    topic_on(strict_kafka, 1, "copies-gone")

    assert producer.flush(120) == 0
    assert outcomes == dict.fromkeys(range(12))
    assert [int(value or b"") for _, value, _ in kept_in(strict_kafka, topic, 12)] == list(range(12))
    assert {int(value or b"") for _, value, _ in kept_in(strict_kafka, "copies-gone", 4)} == {2, 5, 8, 11}
