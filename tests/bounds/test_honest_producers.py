"""With acks=0, librdkafka's forwarded batches do not stay in memory, although no response ever arrives."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.bounds.case import MIB
from tests.bounds.measurement import GROWTH_FREE_BYTES, NOISE_BYTES
from tests.bounds.resident import PeakMeter, resident_bytes
from tests.bounds.stage import Stage
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW

THOROUGH = "SLUICEGATE_THOROUGH" in os.environ
_VALUE = os.urandom(50_000)
_AMOUNT = 1_100 * MIB if THOROUGH else 150 * MIB


def produce_all(bootstrap: str, topic: str, amount: int) -> None:
    settings = {"bootstrap.servers": bootstrap, "acks": 0, "linger.ms": 5, "batch.size": 100_000}
    producer = Producer({**settings, "queue.buffering.max.kbytes": 65_536, "broker.address.family": "v4"})
    for _ in range(amount // len(_VALUE)):
        while True:
            try:
                producer.produce(topic, _VALUE, partition=0)
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(120) == 0


def check_memory(pid: int, bootstrap: str, topic: str) -> None:
    produce_all(bootstrap, topic, 5 * MIB)
    meter = PeakMeter(pid)
    before = meter.begin()
    produce_all(bootstrap, topic, _AMOUNT)
    grown = meter.end() - before
    print(f"{_AMOUNT / MIB:.0f} MiB with acks=0: memory grew by {grown / MIB:.0f} MiB")
    assert grown < GROWTH_FREE_BYTES
    eventually(lambda: resident_bytes(pid) - before < NOISE_BYTES, 10, "memory is released")


def test_acks_0_requests_leave_no_memory_with_a_mock_broker(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "stage")
    try:
        stage.start(honest=False)
        check_memory(stage.pid, f"127.0.0.1:{stage.port(1)}", "given")
    finally:
        stage.stop()


@pytest.fixture
def real_proxy(tmp_path: Path) -> Iterator[tuple[ProxyProcess, Kafka]]:
    kafka = Kafka(KAFKA_NEW, tmp_path / "kafka")
    proxy = ProxyProcess(tmp_path, "")
    try:
        kafka.start()
        proxy.config["upstream"]["bootstrap"] = kafka.bootstrap.split(",")
        yield proxy.start(), kafka
    finally:
        proxy.stop()
        kafka.stop()


@pytest.mark.timeout(600)
@pytest.mark.skipif(not THOROUGH, reason="a gigabyte to a real broker: make bounds")
def test_acks_0_requests_leave_no_memory_with_a_real_broker(real_proxy: tuple[ProxyProcess, Kafka]) -> None:
    proxy, kafka = real_proxy
    topic = create_topic(kafka.bootstrap, UNVALIDATED, partitions=1)
    assert proxy.process is not None
    check_memory(proxy.process.pid, proxy.bootstrap, topic)
