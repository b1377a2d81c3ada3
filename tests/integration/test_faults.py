"""Killing any party in the middle of a stream loses no acknowledged record and leaves no connection."""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.broker.background import Background
from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka, Node
from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_produce import bad_batch_now, leader_of, now_ms
from tests.integration.topics import UNVALIDATED, create_topic
from tests.wire.batches import GZIP, Rec, batch
from tests.wire.raw_client import CLOSED, PRODUCE, RawClient, produce_body, topic_data

_SECONDS = 120
"""Timeout (s). A cluster needs up to 40 s to replace a suspended active controller."""
_MOST_WAITING = 10_000
_PACE_SECONDS = 0.05
PARTITIONS = 3
INVALID_TIMESTAMP = 32


@pytest.fixture
def own_proxy(kafka_bootstrap: str, tmp_path: Path) -> Iterator[ProxyProcess]:
    """Yield a proxy that a test may kill."""
    proxy = ProxyProcess(tmp_path, kafka_bootstrap).start()
    yield proxy
    proxy.stop()


class NumberedRecords:
    """An idempotent producer that numbers its records and remembers acknowledged ones: 400 a second, which is enough
    for several batches in flight at the moment of a fault, and not more than an audit can read.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: set[int] = set()
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "delivery.timeout.ms": _SECONDS * 1000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._background = Background(self._run)

    def __enter__(self) -> Self:
        self._background.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._background.stop()

    def wait_until_acknowledged(self, more: int) -> None:
        """Wait until that many more records are acknowledged."""
        target = len(self.acknowledged) + more
        eventually(lambda: len(self.acknowledged) >= target, _SECONDS, f"{more} more acknowledgements")

    def _run(self) -> None:
        number = 0
        while not self._background.is_stopped:
            for _ in range(20 if len(self._producer) < _MOST_WAITING else 0):
                self._producer.produce(
                    self._topic,
                    str(number).encode(),
                    partition=number % PARTITIONS,
                    on_delivery=lambda error, message: error or self.acknowledged.add(int(message.value())),
                )
                number += 1
            end = time.monotonic() + _PACE_SECONDS
            while (left := end - time.monotonic()) > 0:
                self._producer.poll(left)
        assert self._producer.flush(_SECONDS) == 0


def values_in_topic(bootstrap: str, topic: str) -> list[int]:
    """Return all values of a topic, read directly from the cluster up to its end."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-auditor", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    values, ends = [], 0
    while ends < PARTITIONS:
        message = consumer.poll(_SECONDS)
        assert message is not None
        if message.error() is None:
            values.append(int(message.value()))
        else:
            ends += 1
    consumer.close()
    return values


def check_nothing_lost(bootstrap: str, topic: str, stream: NumberedRecords) -> None:
    stored = values_in_topic(bootstrap, topic)
    assert stream.acknowledged <= set(stored)
    assert len(stored) == len(set(stored)), "a duplicate of an idempotent producer's record"


def test_killing_and_restarting_the_proxy_loses_nothing(own_proxy: ProxyProcess, kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, PARTITIONS)
    with NumberedRecords(own_proxy.bootstrap, topic) as stream:
        stream.wait_until_acknowledged(200)
        own_proxy.kill()
        own_proxy.start()
        stream.wait_until_acknowledged(200)

    check_nothing_lost(kafka_bootstrap, topic, stream)


def test_terminating_the_proxy_drains_it(own_proxy: ProxyProcess, kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, PARTITIONS)
    with NumberedRecords(own_proxy.bootstrap, topic) as stream:
        stream.wait_until_acknowledged(200)
        own_proxy.terminate()
        assert own_proxy.process is not None
        assert own_proxy.process.wait(20) == 0
        assert '"sessions_cut": 0' in own_proxy.log()
        own_proxy.start()
        stream.wait_until_acknowledged(200)

    check_nothing_lost(kafka_bootstrap, topic, stream)


@pytest.mark.long
def test_draining_waits_for_the_response_to_a_request_in_flight(own_proxy: ProxyProcess, kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, PARTITIONS)
    with RawClient(own_proxy.bootstrap) as client:
        asked = client.send_fetch_that_waits(topic, 5_000)
        eventually(lambda: own_proxy.metric("sluicegate_in_flight_requests") == 1, what="the request in flight")
        own_proxy.terminate()
        eventually(lambda: "draining" in own_proxy.log())

        response = client.receive()
        closed = client.receive()

    assert isinstance(response, bytes)
    assert int.from_bytes(response[:4], "big") == asked
    assert closed == CLOSED
    assert own_proxy.process is not None
    assert own_proxy.process.wait(20) == 0


def test_killing_the_client_leaves_no_connection(own_proxy: ProxyProcess, kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, PARTITIONS)
    program = (
        "from confluent_kafka import Producer\n"
        f"p = Producer({{'bootstrap.servers': '{own_proxy.bootstrap}'}})\n"
        "while True:\n"
        f"    p.produce('{topic}', b'1')\n"
        "    p.poll(0.001)\n"
    )
    client = subprocess.Popen(killed_with_parent([sys.executable, "-c", program]))
    eventually(lambda: own_proxy.metric("sluicegate_accepted_records_total") > 100)

    client.kill()
    client.wait()

    eventually(lambda: own_proxy.metric("sluicegate_open_connections") == 0, what="the end of the client's connections")
    with RawClient(own_proxy.bootstrap) as next_client:
        assert isinstance(next_client.api_versions(), dict)


def test_clients_that_reset_during_validation_leave_no_connection(
    own_proxy: ProxyProcess, kafka_bootstrap: str
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, PARTITIONS)
    address = leader_of(own_proxy, topic)
    heavy = batch([Rec(now_ms(), value=os.urandom(400)) for _ in range(2000)], GZIP)
    for i in range(30):
        with RawClient(address) as client:
            client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, heavy))], acks=i % 2))
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    eventually(lambda: own_proxy.metric("sluicegate_open_connections") == 0, 30, "no connection left")
    assert "Traceback" not in own_proxy.log()
    with RawClient(address) as client:
        assert isinstance(client.produce(9, [topic_data(topic, (0, heavy))]), dict)


@pytest.mark.long
def test_killing_and_restarting_a_broker_loses_nothing(cluster: Kafka, cluster_proxy: ProxyProcess) -> None:
    topic = create_topic(cluster.bootstrap, UNVALIDATED | {"min.insync.replicas": "2"}, PARTITIONS, replicas=3)
    victim = cluster.nodes[2]
    with NumberedRecords(cluster_proxy.bootstrap, topic) as stream:
        stream.wait_until_acknowledged(200)
        cluster.kill(victim)
        stream.wait_until_acknowledged(500)
        cluster.start_node(victim)
        cluster.wait_until_up(victim)
        stream.wait_until_acknowledged(500)

    check_nothing_lost(cluster.bootstrap, topic, stream)
    assert cluster_proxy.get("/readyz")[0] == 200
    del stream
    eventually(lambda: cluster_proxy.metric("sluicegate_open_connections") == 0, 30, "no stuck connection")


@pytest.mark.long
def test_a_broker_that_dies_with_requests_in_flight_leaves_no_stuck_client(
    cluster: Kafka, cluster_proxy: ProxyProcess
) -> None:
    victim = cluster.nodes[1]
    topic = create_topic(cluster.bootstrap, UNVALIDATED, PARTITIONS, replicas=3)
    with RawClient(f"127.0.0.1:{cluster_proxy.broker_port(victim.node_id)}") as client:
        client.send_fetch_that_waits(topic, 60_000)
        cluster.kill(victim)
        assert client.receive() == CLOSED
    cluster.start_node(victim)
    cluster.wait_until_up(victim)


@contextmanager
def suspended_broker(cluster: Kafka, node: Node) -> Iterator[None]:
    """Suspend a broker, which then accepts connections and never responds. Resume it at the end."""
    assert node.process is not None
    node.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        node.process.send_signal(signal.SIGCONT)
        eventually(lambda: len(brokers_seen_by(node)) == cluster.size, what="a complete cluster")


def brokers_seen_by(node: Node) -> list[Any]:
    with RawClient(node.address) as client:
        brokers: list[Any] = client.metadata()["brokers"]
    return brokers


@pytest.mark.long
def test_a_suspended_bootstrap_broker_blocks_no_client(cluster: Kafka, tmp_path: Path) -> None:
    settings = {"message.timestamp.after.max.ms": "3600000", "min.insync.replicas": "2"}
    topic = create_topic(cluster.bootstrap, settings, PARTITIONS, replicas=3)
    proxy = ProxyProcess(tmp_path, cluster.bootstrap)
    try:
        with suspended_broker(cluster, cluster.nodes[0]):
            proxy.start()
            with NumberedRecords(proxy.bootstrap, topic) as stream:
                stream.wait_until_acknowledged(200)
            entry = rejected_at_the_leader(proxy, topic)
    finally:
        proxy.stop()

    assert entry["error_code"] == INVALID_TIMESTAMP  # the proxy knew the topic's settings nevertheless
    check_nothing_lost(cluster.bootstrap, topic, stream)


def rejected_at_the_leader(proxy: ProxyProcess, topic: str) -> dict[str, Any]:
    """Send a bad batch through the port of the partition's leader; return the proxy's response for it."""
    consumer = Consumer({"bootstrap.servers": proxy.bootstrap, "group.id": "-"})
    leader = consumer.list_topics(topic, _SECONDS).topics[topic].partitions[0].leader
    consumer.close()
    with RawClient(f"127.0.0.1:{proxy.broker_port(leader)}") as client:
        response = client.produce(9, [topic_data(topic, (0, bad_batch_now()))])
    assert isinstance(response, dict)
    entry: dict[str, Any] = response["responses"][0]["partition_responses"][0]
    proxy.wait_for_violations(topic, 1)  # the response came from the proxy, not from the broker
    return entry
