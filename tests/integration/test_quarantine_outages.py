"""If the broker of a dead-letter topic fails or its disk is full, no bad record is lost."""

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker.disk import Disk
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka, Node
from tests.broker.proxy_process import ProxyProcess
from tests.integration.strict_broker import create_topic_on_node, read_records
from tests.integration.test_quarantine import (
    RETRIABLE,
    entries_by_partition,
    now_ms,
    produce_and_wait,
    proxy_headers,
    raw_client_of,
)
from tests.integration.topics import DEFAULTS
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import topic_data

pytestmark = pytest.mark.long

INVALID_TIMESTAMP = 32
RECORD_BYTES = 50_000
COUNT = 200
MIB = 1 << 20


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    made = Kafka(KAFKA_NEW, tmp_path / "kafka", settings={"auto.create.topics.enable": "false"})
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def disk(kafka: Kafka) -> Iterator[Disk]:
    made = Disk(kafka.folder / "data-2")
    try:
        yield made
    finally:
        kafka.stop()
        made.unmount()


def kill_broker(kafka: Kafka, node: Node, _disk: Disk) -> Callable[[], None]:
    """Kill the broker, as in a power cut."""
    kafka.kill(node)
    return lambda: None


def fill_and_replace_disk(_kafka: Kafka, node: Node, disk: Disk) -> Callable[[], None]:
    """Fill the broker's only disk, so that Kafka ends; afterwards restart it with a larger disk."""
    process = node.process
    assert process is not None
    eventually(lambda: process.poll() is not None, what="the end of the broker")
    return lambda: disk.resize(200 * MIB)


@pytest.mark.parametrize("lose", [kill_broker, fill_and_replace_disk], ids=lambda each: each.__name__)
def test_every_permanently_rejected_record_was_quarantined_despite_an_outage(
    lose: Callable[[Kafka, Node, Disk], Callable[[], None]], kafka: Kafka, disk: Disk, tmp_path: Path
) -> None:
    if lose is fill_and_replace_disk:
        disk.mount(4 * MIB)
        if disk.why_not is not None:
            pytest.skip(f"no disk can be mounted: {disk.why_not}")
    node = kafka.add_node()
    topic, other = (create_topic_on_node(kafka, 1, f"{kind}-{uuid.uuid4().hex[:8]}") for kind in ("kept", "other"))
    dead = create_topic_on_node(kafka, 2, "dead")
    settings = {
        "defaults": DEFAULTS,
        "topics": [{"match": topic, "quarantine": dead}],
        "limits": {"frame_timeout_seconds": 4},  # how long the proxy tries to write a record
    }
    proxy = ProxyProcess(tmp_path, kafka.nodes[0].address, settings)
    codes: list[Counter[int]] = [Counter() for _ in range(COUNT)]
    chance = random.Random(7)

    def send() -> None:
        with raw_client_of(proxy) as client:
            for i, seen in enumerate(codes):
                data = batch([Rec(i, f"{i}".encode(), chance.randbytes(RECORD_BYTES))])
                while seen[INVALID_TIMESTAMP] == 0:
                    seen[produce_and_wait(client, topic, data)["error_code"]] += 1

    sender = threading.Thread(target=send, daemon=True)
    try:
        proxy.start()
        sender.start()
        eventually(lambda: codes[10][INVALID_TIMESTAMP], what="the first verdicts")
        recover = lose(kafka, node, disk)
        eventually(lambda: proxy.metric("sluicegate_quarantine_failures_total") > 0, what="a failure")
        with raw_client_of(proxy) as neighbour:
            for _ in range(20):
                began = time.monotonic()
                good = topic_data(other, (0, batch([Rec(now_ms())])))
                assert entries_by_partition(neighbour.produce(9, [good]))[0]["error_code"] == 0
                assert time.monotonic() - began < 2
        recover()
        kafka.start_node(node)
        kafka.wait_until_up(node)
        sender.join(240)
        assert not sender.is_alive()
    finally:
        proxy.stop()

    seen = sum(codes, Counter[int]())
    assert set(seen) == {INVALID_TIMESTAMP, RETRIABLE}
    assert seen[INVALID_TIMESTAMP] == COUNT
    kept = Counter(proxy_headers(headers)["timestamp"] for _, _, headers in read_records(kafka, dead, COUNT))
    assert set(kept) == {str(i) for i in range(COUNT)}, "each record at least once"
    assert kept.total() <= seen.total(), "no record more often than it was sent"
