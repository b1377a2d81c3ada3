"""If a bad batch is for a partition with another error that a broker reports first, the proxy's response is the same.

Each batch is sent to a broker that has the limits, and through the proxy to a topic of the same kind without limits.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker.eventually import eventually
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka, Node
from tests.broker.proxy_process import ProxyProcess
from tests.broker.security import plain_login, security_settings
from tests.integration.test_produce import bad_batch_now, good_batch_now
from tests.integration.topics import UNVALIDATED, VALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.raw_client import RawClient, topic_data

NOT_LEADER, NOT_ENOUGH_REPLICAS, INVALID_TIMESTAMP = 6, 19, 32
# Responses of the first version have no leader addresses, those of the second have them. The third has topic ids.
VERSIONS = [8, 10, 13]


def partition_leaders(bootstrap: str, topic: str) -> dict[int, int]:
    """Return the leader of each partition."""
    with RawClient(bootstrap.split(",", maxsplit=1)[0]) as client:
        partitions = client.metadata(topic)["topics"][0]["partitions"]
    return {entry["partition_index"]: entry["leader_id"] for entry in partitions}


def response_entries(address: str, topic: str, version: int, *partitions: tuple[int, bytes], acks: int = -1) -> Any:
    """Return the response for each partition, without fields that differ between two topics of a cluster."""
    with RawClient(address) as client:
        key = client.metadata(topic)["topics"][0]["topic_id"] if version >= 13 else topic
        response = client.produce(version, [topic_data(key, *partitions)], acks)
    assert isinstance(response, dict)
    found = {entry["index"]: entry for topic in response["responses"] for entry in topic["partition_responses"]}
    for entry in found.values():
        entry.pop("current_leader", None)
        for error in entry.get("record_errors", []):
            error.pop("batch_index_error_message")  # contains times
    return found, [(node["node_id"], node["port"]) for node in response.get("node_endpoints", [])]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_brokers_not_leader_error_comes_before_a_validation_error(
    version: int, cluster: Kafka, cluster_proxy: ProxyProcess
) -> None:
    validated = create_topic(cluster.bootstrap, VALIDATED, partitions=3, replicas=3)
    unvalidated = create_topic(cluster.bootstrap, UNVALIDATED, partitions=3, replicas=3)
    where_validated, where_unvalidated = (
        partition_leaders(cluster.bootstrap, validated),
        partition_leaders(cluster.bootstrap, unvalidated),
    )
    node = cluster.nodes[0]

    def batches_for_two_leaders(where: dict[int, int]) -> list[tuple[int, bytes]]:
        """Return a bad batch for a partition of this leader, and for a partition of another leader."""
        led = next(partition for partition, leader in where.items() if leader == node.node_id)
        elsewhere = next(partition for partition, leader in where.items() if leader != node.node_id)
        return [(led, bad_batch_now()), (elsewhere, bad_batch_now())]

    direct, at_brokers = response_entries(node.address, validated, version, *batches_for_two_leaders(where_validated))
    proxied = f"127.0.0.1:{cluster_proxy.broker_port(node.node_id)}"
    through, at_proxy = response_entries(proxied, unvalidated, version, *batches_for_two_leaders(where_unvalidated))

    assert [e["error_code"] for e in direct.values()].count(NOT_LEADER) == 1
    assert sorted(e["error_code"] for e in through.values()) == sorted(e["error_code"] for e in direct.values())
    assert len(at_proxy) == len(at_brokers) == (1 if version >= 10 else 0)
    for node_id, port in at_proxy:
        assert port == cluster_proxy.broker_port(node_id)
        assert node_id != node.node_id


@pytest.mark.long
def test_too_few_replicas_are_reported_before_invalid_timestamps(cluster: Kafka, cluster_proxy: ProxyProcess) -> None:
    few = {"min.insync.replicas": "3"}
    validated = create_topic(cluster.bootstrap, VALIDATED | few, partitions=3, replicas=3)
    unvalidated = create_topic(cluster.bootstrap, UNVALIDATED | few, partitions=3, replicas=3)
    victim, leader = cluster.nodes[2], cluster.nodes[0]
    cluster.kill(victim)
    try:
        for topic in (validated, unvalidated):
            eventually(partial(has_applied_smaller_isr, leader, topic), 60, "the smaller ISR at the leader")
        for acks, code in ((-1, NOT_ENOUGH_REPLICAS), (1, INVALID_TIMESTAMP)):
            proxied = f"127.0.0.1:{cluster_proxy.broker_port(leader.node_id)}"
            direct = led_response(leader, leader.address, validated, acks, bad_batch_now())
            through = led_response(leader, proxied, unvalidated, acks, bad_batch_now())
            assert through == direct
            assert through["error_code"] == code
    finally:
        cluster.start_node(victim)
        cluster.wait_until_up(victim)


def led_response(leader: Node, address: str, topic: str, acks: int, batch: bytes) -> Any:
    """Send a batch to a partition of this leader until it acts as leader; return the response."""
    responses = []

    def has_leader_responded() -> bool:
        led = partition_leaders(leader.address, topic)
        partition = next(index for index, node_id in led.items() if node_id == leader.node_id)
        found, _ = response_entries(address, topic, 9, (partition, batch), acks=acks)
        responses.append({**found[partition], "index": None})
        return responses[-1]["error_code"] != NOT_LEADER

    eventually(has_leader_responded, what="leadership at the leader")
    return responses[-1]


def has_applied_smaller_isr(leader: Node, topic: str) -> bool:
    """Return whether the leader applies its smaller ISR; its metadata shows the new ISR earlier.

    A corrupt batch gets a response at once in both states; a good one would wait for the dead replica.
    """
    whole = good_batch_now()
    corrupt = whole[:-1] + bytes([whole[-1] ^ 1])
    return bool(led_response(leader, leader.address, topic, -1, corrupt)["error_code"] == NOT_ENOUGH_REPLICAS)


def test_a_rejection_has_the_brokers_log_start_offset(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    validated = create_topic(kafka_bootstrap, VALIDATED, partitions=1)
    unvalidated = create_topic(kafka_bootstrap, UNVALIDATED, partitions=1)
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    proxied = f"127.0.0.1:{proxy.broker_port(1)}"
    for topic in (validated, unvalidated):
        for _ in range(3):
            response_entries(kafka_bootstrap, topic, 9, (0, good_batch_now()))
        for future in admin.delete_records([TopicPartition(topic, 0, 2)]).values():
            future.result(30)

    direct, _ = response_entries(kafka_bootstrap, validated, 9, (0, bad_batch_now()))
    through, _ = response_entries(proxied, unvalidated, 9, (0, bad_batch_now()))
    at_once, _ = response_entries(proxied, unvalidated, 9, (0, bad_batch_now()))

    assert through == direct == at_once
    assert direct[0]["log_start_offset"] == 2

    for topic in (validated, unvalidated):
        for future in admin.delete_records([TopicPartition(topic, 0, 3)]).values():
            future.result(30)
    eventually(lambda: response_entries(proxied, unvalidated, 9, (0, bad_batch_now()))[0][0]["log_start_offset"] == 3)


@pytest.mark.long
def test_a_client_must_log_in_before_its_batches_are_validated(tmp_path: Path) -> None:
    """Without a login a broker does not respond to Produce, and neither does the proxy."""
    settings = security_settings("SASL_PLAINTEXT", "PLAIN", plain=plain_login(a="a"))
    for kafka in run_kafka(Kafka(KAFKA_NEW, tmp_path, settings=settings)):
        upstream = {"bootstrap": [kafka.bootstrap], "brokers": {1: kafka.bootstrap}}
        process = ProxyProcess(tmp_path, kafka.bootstrap, {"upstream": upstream})
        try:
            process.start()
            responses = []
            for address in (kafka.bootstrap, f"127.0.0.1:{process.broker_port(1)}"):
                with RawClient(address) as client:
                    responses.append(client.produce(9, [topic_data("any", (0, bad_batch_now()[:20]))]))
        finally:
            process.stop()

    assert responses[0] == responses[1] == "closed"
