"""When a cluster changes while clients work through the proxy, they behave as they would without the proxy.

All clients connect through a relay that records every byte sent to them. No broker address may be among these bytes.
"""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess
from tests.broker.recording_relay import RecordingRelay
from tests.integration.clients import CLIENTS, IDEMPOTENT, PLAIN, Client, Sent
from tests.integration.java import java_tool
from tests.integration.test_faults import PARTITIONS, NumberedRecords, check_nothing_lost, values_in_topic
from tests.integration.test_produce import bad_batch_now, good_batch_now
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.raw_client import RawClient, topic_data

SEEN_BY_CLIENTS = "127.0.0.2"
MOST_BROKERS = 4
INVALID_TIMESTAMP, UNKNOWN_TOPIC_ID = 32, 100


@dataclass(frozen=True)
class TopologySetting:
    """Three brokers, a proxy, and the relay between clients and proxy."""

    cluster: Kafka
    proxy: ProxyProcess
    relay: RecordingRelay

    @property
    def bootstrap(self) -> str:
        return f"{SEEN_BY_CLIENTS}:{self.proxy.bootstrap.rpartition(':')[2]}"

    def no_upstream_address_was_sent(self) -> None:
        everything = b"\0".join(self.relay.sent_to_clients)
        assert SEEN_BY_CLIENTS.encode() in everything
        assert b"127.0.0.1" not in everything
        for node in self.cluster.nodes:  # with its host, because the number alone may be an offset or a size
            assert SEEN_BY_CLIENTS.encode() + node.port.to_bytes(4, "big") not in everything
            assert f":{node.port}".encode() not in everything


@pytest.fixture(scope="module")
def topology(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TopologySetting]:
    cluster = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("cluster"), size=3)
    try:
        cluster.start()
        proxy = ProxyProcess(tmp_path_factory.mktemp("proxy"), cluster.bootstrap, {"defaults": DEFAULTS})
        proxy.config["upstream"]["bootstrap"].insert(0, f"127.0.0.1:{free_ports(1)}")  # no listener
        proxy.config["listen"]["advertised_host"] = SEEN_BY_CLIENTS
        proxy.start()
        ports = [int(proxy.bootstrap.rpartition(":")[2])]
        ports += [proxy.broker_port(node_id) for node_id in range(1, MOST_BROKERS + 1)]
        with RecordingRelay(SEEN_BY_CLIENTS, ports) as relay:
            yield TopologySetting(cluster, proxy, relay)
        proxy.stop()
    finally:
        cluster.stop()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def reassign(bootstrap: str, topic: str, replicas: dict[int, list[int]], folder: Path) -> None:
    """Move partitions to other brokers with Kafka's own tool, and wait until they have moved."""
    partitions = [{"topic": topic, "partition": p, "replicas": to} for p, to in replicas.items()]
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    arguments = ("--bootstrap-server", bootstrap, "--reassignment-json-file", str(plan))
    java_tool(tool, *arguments, "--execute")
    eventually(lambda: "is still in progress" not in java_tool(tool, *arguments, "--verify"), 60, "the move")


@pytest.mark.long
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_clients_work_with_a_dead_bootstrap_address(client: Client, topology: TopologySetting) -> None:
    topic = create_topic(topology.cluster.bootstrap, UNVALIDATED, replicas=3)

    outcomes = client.send(topology.bootstrap, topic, [Sent("good", now_ms())], "none", IDEMPOTENT)
    rejected = client.send(topology.bootstrap, topic, [Sent("bad", now_ms() * 1000)], "none", PLAIN)

    assert outcomes == ["ok"]
    assert rejected != ["ok"]
    assert client.read(topology.bootstrap, topic, 1) == ["good"]
    topology.no_upstream_address_was_sent()


@pytest.mark.long
def test_leaders_move_without_loss_of_records(topology: TopologySetting, tmp_path: Path) -> None:
    topic = create_topic(topology.cluster.bootstrap, UNVALIDATED, PARTITIONS)
    with NumberedRecords(topology.bootstrap, topic) as stream:
        stream.wait_until_acknowledged(200)
        for turn in range(2):
            there = {p: [(p + turn) % 3 + 1] for p in range(PARTITIONS)}
            reassign(topology.bootstrap, topic, there, tmp_path)
            stream.wait_until_acknowledged(200)

    check_nothing_lost(topology.cluster.bootstrap, topic, stream)
    assert sorted(values_in_topic(topology.bootstrap, topic)) == sorted(
        values_in_topic(topology.cluster.bootstrap, topic)
    )
    topology.no_upstream_address_was_sent()


@pytest.mark.long
def test_a_broker_fails_and_returns_without_loss(topology: TopologySetting) -> None:
    topic = create_topic(topology.cluster.bootstrap, UNVALIDATED | {"min.insync.replicas": "2"}, PARTITIONS, replicas=3)
    victim = topology.cluster.nodes[1]
    with NumberedRecords(topology.bootstrap, topic) as stream:
        stream.wait_until_acknowledged(200)
        topology.cluster.kill(victim)
        stream.wait_until_acknowledged(300)
        topology.cluster.start_node(victim)
        topology.cluster.wait_until_up(victim)
        stream.wait_until_acknowledged(300)

    check_nothing_lost(topology.cluster.bootstrap, topic, stream)
    assert len(values_in_topic(topology.bootstrap, topic)) >= len(stream.acknowledged)
    topology.no_upstream_address_was_sent()


@pytest.mark.long
def test_an_added_broker_is_used(topology: TopologySetting, tmp_path: Path) -> None:
    topic = create_topic(topology.cluster.bootstrap, UNVALIDATED, PARTITIONS)
    with NumberedRecords(topology.bootstrap, topic) as stream:
        stream.wait_until_acknowledged(100)
        added = topology.cluster.add_node()
        eventually(lambda: added.node_id in known_brokers(topology), 60, "the new broker, through the proxy")
        reassign(topology.bootstrap, topic, {p: [added.node_id] for p in range(PARTITIONS)}, tmp_path)
        stream.wait_until_acknowledged(300)

    check_nothing_lost(topology.cluster.bootstrap, topic, stream)
    assert known_brokers(topology)[added.node_id] == (SEEN_BY_CLIENTS, topology.proxy.broker_port(added.node_id))
    with RawClient(f"{SEEN_BY_CLIENTS}:{topology.proxy.broker_port(added.node_id)}") as client:
        response = client.produce(9, [topic_data(topic, (0, bad_batch_now()))])
    assert response["responses"][0]["partition_responses"][0]["error_code"] == INVALID_TIMESTAMP
    topology.no_upstream_address_was_sent()


def known_brokers(setting: TopologySetting) -> dict[int, tuple[str, int]]:
    """Return the addresses by node id in the proxy's metadata."""
    with RawClient(setting.bootstrap) as client:
        return {b["node_id"]: (b["host"], b["port"]) for b in client.metadata()["brokers"]}


@pytest.mark.long
def test_added_partitions_are_used(topology: TopologySetting) -> None:
    topic = create_topic(topology.cluster.bootstrap, UNVALIDATED, partitions=1, replicas=3)
    admin = AdminClient({"bootstrap.servers": topology.bootstrap})
    producer = Producer({"bootstrap.servers": topology.bootstrap, "topic.metadata.refresh.interval.ms": 200})
    delivered: list[int] = []

    for future in admin.create_partitions([NewPartitions(topic, PARTITIONS)]).values():
        future.result(30)
    eventually(lambda: len(producer.list_topics(topic, 10).topics[topic].partitions) == PARTITIONS)
    for partition in range(PARTITIONS):
        producer.produce(
            topic, b"0", partition=partition, on_delivery=lambda error, m: error or delivered.append(m.partition())
        )
    assert producer.flush(30) == 0

    assert sorted(delivered) == list(range(PARTITIONS))
    topology.no_upstream_address_was_sent()


def test_producers_continue_after_their_topic_is_deleted_and_recreated(topology: TopologySetting) -> None:
    topic = create_topic(topology.cluster.bootstrap, UNVALIDATED, partitions=1, replicas=1)
    old = leader_and_id(topology, topic)
    admin = AdminClient({"bootstrap.servers": topology.bootstrap})
    producer = Producer({"bootstrap.servers": topology.bootstrap, "topic.metadata.refresh.interval.ms": 200})
    producer.produce(topic, b"before")
    assert producer.flush(30) == 0

    for future in admin.delete_topics([topic]).values():
        future.result(30)
    wait_until_recreated(topology, topic, old[1])
    new = leader_and_id(topology, topic)
    outcomes = {}
    for name, topic_id, records in (
        ("old id", old[1], bad_batch_now()),
        ("new id", new[1], good_batch_now()),
        ("bad", new[1], bad_batch_now()),
    ):
        responses = []
        for address in (broker_address(topology, new[0]), topology.cluster.nodes[new[0] - 1].address):
            with RawClient(address) as client:
                response = client.produce(13, [topic_data(topic_id, (0, records))])
            responses.append(response["responses"][0]["partition_responses"][0]["error_code"])
        outcomes[name] = responses
    delivered: list[object] = []
    producer.produce(topic, b"after", on_delivery=lambda error, _: delivered.append(error))
    assert producer.flush(60) == 0

    assert outcomes["old id"] == [UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_ID]
    assert outcomes["new id"] == [0, 0]
    assert outcomes["bad"][0] == INVALID_TIMESTAMP  # the broker itself has no limits here
    assert delivered == [None]
    topology.no_upstream_address_was_sent()


def wait_until_recreated(setting: TopologySetting, topic: str, old_id: bytes) -> None:
    """Wait for a topic of the same name with another id; the producer's metadata requests may create it."""
    admin = AdminClient({"bootstrap.servers": setting.bootstrap})

    def is_topic_created() -> bool:
        for future in admin.create_topics([NewTopic(topic, 1, 1, config=UNVALIDATED)]).values():
            with suppress(KafkaException):  # the topic still exists, or exists again
                future.result(30)
        with RawClient(setting.bootstrap) as client:
            found: bytes = client.metadata(topic)["topics"][0]["topic_id"]
        return any(found) and found != old_id

    eventually(is_topic_created, 60, "the topic with a new id")


def leader_and_id(setting: TopologySetting, topic: str) -> tuple[int, bytes]:
    """Wait until the leader of partition 0 acts as leader; return its id and the topic id."""

    def found_leader() -> bool:
        with RawClient(setting.bootstrap) as client:
            partitions = client.metadata(topic)["topics"][0]["partitions"]
        if not partitions or partitions[0]["leader_id"] < 0:
            return False
        with RawClient(setting.cluster.nodes[partitions[0]["leader_id"] - 1].address) as client:
            return client.fetch_error(topic, 0) == 0

    eventually(found_leader, 30, "a leader")
    with RawClient(setting.bootstrap) as client:
        entry = client.metadata(topic)["topics"][0]
    return entry["partitions"][0]["leader_id"], entry["topic_id"]


def broker_address(setting: TopologySetting, node_id: int) -> str:
    return f"{SEEN_BY_CLIENTS}:{setting.proxy.broker_port(node_id)}"
