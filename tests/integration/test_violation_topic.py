"""Violation events arrive in a topic of the cluster, and problems with the topic do not affect clients."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.strict_broker import create_topic_on_node, read_records
from tests.integration.test_modes import error_code_in
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.proxy.cli.test_commands import sluicegate
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data


@pytest.fixture
def bad_batch() -> bytes:
    return batch([Rec(time.time_ns())])


def proxy_with_violation_topic(folder: Path, kafka: Kafka, events_to: str, **violations: Any) -> ProxyProcess:
    given = {"topic": events_to, "file": str(folder / "violations.jsonl"), **violations}
    return ProxyProcess(folder, kafka.nodes[0].address, {"defaults": DEFAULTS, "violations": given})


def send_bad_batches(proxy: ProxyProcess, topic: str, bad_batch: bytes, times: int) -> float:
    """Send bad batches and return the time of the slowest rejection (s)."""
    slowest = 0.0
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        for _ in range(times):
            began = time.monotonic()
            assert error_code_in(client.produce(9, [topic_data(topic, (0, bad_batch))])) == 32
            slowest = max(slowest, time.monotonic() - began)
    return slowest


@pytest.fixture
def proxies() -> Iterator[list[ProxyProcess]]:
    """Yield a list of proxies, which are stopped at the end."""
    started: list[ProxyProcess] = []
    yield started
    for proxy in started:
        proxy.stop()


def test_each_event_in_the_topic_equals_the_event_in_the_file(
    strict_kafka: Kafka, tmp_path: Path, proxies: list[ProxyProcess], bad_batch: bytes
) -> None:
    events, topic = create_topic_on_node(strict_kafka, 1, "events"), create_topic_on_node(strict_kafka, 1, "validated")
    proxies.append(proxy_with_violation_topic(tmp_path, strict_kafka, events).start())
    proxy = proxies[0]

    send_bad_batches(proxy, topic, bad_batch, 20)
    proxy.terminate()  # stopping sends all queued events
    assert proxy.process is not None
    assert proxy.process.wait(30) == 0

    found = read_records(strict_kafka, events, 20)
    assert [json.loads(value or b"") for _, value, _ in found] == proxy.violations_of(topic)
    assert {key for key, _, _ in found} == {topic.encode()}
    assert len(found) == 20


def test_each_proxy_reads_recent_events_of_all_running_and_stopped_proxies(
    kafka_bootstrap: str, tmp_path: Path, proxies: list[ProxyProcess], bad_batch: bytes
) -> None:
    events = create_topic(kafka_bootstrap, {}, partitions=3)
    topics = [create_topic(kafka_bootstrap, UNVALIDATED) for _ in range(2)]
    for name in ("ended", "running"):
        (folder := tmp_path / name).mkdir()
        given = {"defaults": DEFAULTS, "violations": {"topic": events}}
        proxies.append(ProxyProcess(folder, kafka_bootstrap, given))
    ended, running = proxies
    ended.start()
    for topic, times in zip(topics, (3, 5), strict=True):
        send_bad_batches(ended, topic, bad_batch, times)
    ended.terminate()
    assert ended.process is not None
    assert ended.process.wait(30) == 0
    producer = Producer({"bootstrap.servers": kafka_bootstrap})
    producer.produce(events, b"no event")
    assert producer.flush(30) == 0
    address = running.start().admin.removeprefix("http://")

    def rejected_batches_by_topic(*options: str) -> dict[str, int]:
        done = sluicegate("who", *options, "--json", "--admin", address)
        assert done.returncode == 0, done.stderr
        return {group["topic"]: group["batches"] for group in json.loads(done.stdout)["groups"]}

    assert rejected_batches_by_topic("--days", "1") == dict(zip(topics, (3, 5), strict=True))
    assert rejected_batches_by_topic(topics[1], "--days", "1", "--rule", "timestamp_in_future") == {topics[1]: 5}
    assert rejected_batches_by_topic("--days", "1", "--rule", "another") == {}
    assert rejected_batches_by_topic("--days", "1", "--until", "2026-01-01") == {}
    shown = sluicegate("who", topics[0], "--days", "1", "--admin", address).stdout
    assert "skipped 1 records" in shown
    assert f"{topics[0]}: 1 client with violations from 2" in shown
    assert "timestamp_in_future: 3 batches" in shown
    memory = sluicegate("who", topics[0], "--admin", address)
    assert memory.stdout.startswith(f"{topics[0]}: no violations recorded since 2")
    assert "(memory only, since the start)" in memory.stdout


def test_without_a_violation_topic_the_command_who_reports_that_it_covers_only_memory(
    kafka_bootstrap: str, tmp_path: Path, proxies: list[ProxyProcess]
) -> None:
    proxies.append(ProxyProcess(tmp_path, kafka_bootstrap).start())

    done = sluicegate("who", "--days", "1", "--admin", proxies[0].admin.removeprefix("http://"))

    assert (done.returncode, "violations.topic is not configured" in done.stderr) == (1, True)


@pytest.mark.long
def test_a_missing_topic_is_reported_and_clients_are_not_affected(
    strict_kafka: Kafka, tmp_path: Path, proxies: list[ProxyProcess], bad_batch: bytes
) -> None:
    topic = create_topic_on_node(strict_kafka, 1, "validated-too")
    proxies.append(proxy_with_violation_topic(tmp_path, strict_kafka, "missing").start())
    proxy = proxies[0]

    assert send_bad_batches(proxy, topic, bad_batch, 50) < 5

    eventually(lambda: proxy.metric("sluicegate_violation_topic_events_failed_total") == 50)
    proxy.wait_for_line("violation events not sent")
    assert len(proxy.wait_for_violations(topic, 50)) == 50, "all events in the file"
    create_topic_on_node(strict_kafka, 1, "missing")

    def has_arrived() -> bool:
        send_bad_batches(proxy, topic, bad_batch, 1)
        return len(read_records(strict_kafka, "missing", 0)) > 0

    eventually(has_arrived, what="events after the topic exists")


@pytest.mark.long
def test_a_suspended_broker_fills_only_the_queue(
    strict_kafka: Kafka, tmp_path: Path, proxies: list[ProxyProcess], bad_batch: bytes
) -> None:
    events, topic = (
        create_topic_on_node(strict_kafka, 2, "slow-events"),
        create_topic_on_node(strict_kafka, 1, "validated-still"),
    )
    proxies.append(proxy_with_violation_topic(tmp_path, strict_kafka, events, queue_size=10).start())
    proxy = proxies[0]
    send_bad_batches(proxy, topic, bad_batch, 1)
    assert len(read_records(strict_kafka, events, 1)) == 1
    broker = strict_kafka.nodes[1].process
    assert broker is not None
    broker.send_signal(signal.SIGSTOP)
    try:
        assert send_bad_batches(proxy, topic, bad_batch, 2200) < 5
        eventually(lambda: proxy.metric("sluicegate_violation_topic_events_dropped_total") > 0)
    finally:
        broker.send_signal(signal.SIGCONT)

    def all_reported() -> bool:
        lost = sum(proxy.metric(f"sluicegate_violation_topic_events_{why}_total") for why in ("dropped", "failed"))
        return len(read_records(strict_kafka, events, 0)) >= 2201 - lost > 1

    eventually(all_reported, what="every event sent or counted")


def test_without_a_file_events_go_only_to_the_topic(
    strict_kafka: Kafka, tmp_path: Path, proxies: list[ProxyProcess], bad_batch: bytes
) -> None:
    events, topic = (
        create_topic_on_node(strict_kafka, 1, "only-events"),
        create_topic_on_node(strict_kafka, 1, "validated-only"),
    )
    proxy = proxy_with_violation_topic(tmp_path, strict_kafka, events)
    del proxy.config["violations"]["file"]
    proxy.config["workers"] = 2
    proxies.append(proxy.start())

    for _ in range(10):  # connections may reach different workers
        send_bad_batches(proxy, topic, bad_batch, 1)

    found = read_records(strict_kafka, events, 10)
    assert len(found) == 10
