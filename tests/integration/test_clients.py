"""Real clients work through the proxy. After a rejection, their errors equal the errors at a broker."""

import re
import time

import pytest
from confluent_kafka import Producer

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.conformance.differences import without_diagnosis
from tests.integration.clients import (
    CLIENTS,
    IDEMPOTENT,
    PLAIN,
    TRANSACTIONAL,
    Client,
    Confluent,
    Sent,
    console_produce,
)
from tests.integration.topics import UNVALIDATED, VALIDATED, create_topic

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = 20

# Each codec starts another JVM.
_JAVA_CODECS = {PLAIN: CODECS[:1], IDEMPOTENT: CODECS[1:3], TRANSACTIONAL: CODECS[3:]}

any_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
any_mode = pytest.mark.parametrize("mode", [PLAIN, IDEMPOTENT, TRANSACTIONAL])


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def good_records(label: str) -> list[Sent]:
    return [Sent(f"{label} {i}", now_ms() - i) for i in range(RECORDS)]


def outcomes_without_varying_parts(outcomes: list[str]) -> list[str]:
    """Return the outcomes without current times and without the diagnosis that sluicegate appends."""
    return [re.sub(r"-?\d{10,}", "N", without_diagnosis(outcome)) for outcome in outcomes]


@pytest.mark.long
@any_client
@any_mode
def test_a_client_reads_back_its_records_in_every_codec(
    client: Client, mode: str, kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    codecs = _JAVA_CODECS[mode] if client.name == "java" else CODECS
    sent = []

    for codec in codecs:
        records = good_records(codec)
        assert client.send(proxy.bootstrap, topic, records, codec, mode) == ["ok"] * RECORDS
        sent += [record.value for record in records]

    assert client.read(proxy.bootstrap, topic, len(sent)) == sent


@pytest.mark.long
@any_client
@any_mode
def test_a_timestamp_in_nanoseconds_is_rejected_as_by_a_broker(
    client: Client, mode: str, kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    validated, unvalidated = create_topic(kafka_bootstrap, VALIDATED), create_topic(kafka_bootstrap, UNVALIDATED)
    now = now_ms()
    polluted = [Sent("a", now), Sent("b", now), Sent("nanoseconds", now * 1_000_000), Sent("c", now)]
    good = good_records("good")

    direct = client.send(kafka_bootstrap, validated, polluted, "lz4", mode)
    through = client.send(proxy.bootstrap, unvalidated, polluted, "lz4", mode)
    assert client.send(proxy.bootstrap, unvalidated, good, "none", mode) == ["ok"] * RECORDS

    assert outcomes_without_varying_parts(through) == outcomes_without_varying_parts(direct)
    assert "ok" not in through
    assert client.read(proxy.bootstrap, unvalidated, RECORDS) == [record.value for record in good]
    eventually(lambda: proxy.violations_of(unvalidated), what="the event")
    event = proxy.violations_of(unvalidated)[0]
    assert [sample["index"] for sample in event["samples"]] == [2]
    assert event["samples"][0]["timestamp"] == now * 1_000_000
    assert event["samples"][0]["diagnosis"].startswith("looks like nanoseconds: as milliseconds it is ")
    assert (event["code"], event["records"], event["bad_records"]) == (32, 4, 1)
    if client.name != "aiokafka":  # aiokafka sends ApiVersions v0, which contains no software name
        assert event["software_name"]


@pytest.mark.long
def test_the_console_producer_and_consumer_work(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, partitions=1)
    values = []

    for codec in CODECS:
        values += [f"{codec} {i}" for i in range(5)]
        console_produce(proxy.bootstrap, topic, values[-5:], codec)

    java = next(client for client in CLIENTS if client.name == "java")
    assert java.read(proxy.bootstrap, topic, len(values)) == values


@pytest.mark.long
@any_client
def test_each_client_works_with_three_brokers(client: Client, cluster: Kafka, cluster_proxy: ProxyProcess) -> None:
    validated = create_topic(cluster.bootstrap, VALIDATED, partitions=3, replicas=3)
    topic = create_topic(cluster.bootstrap, UNVALIDATED, partitions=3, replicas=3)
    good = good_records("good")
    polluted = [Sent("a", now_ms()), Sent("nanoseconds", now_ms() * 1_000_000)]

    assert client.send(cluster_proxy.bootstrap, topic, good, "zstd", IDEMPOTENT) == ["ok"] * RECORDS
    through = client.send(cluster_proxy.bootstrap, topic, polluted, "none", IDEMPOTENT)
    direct = client.send(cluster.bootstrap, validated, polluted, "none", IDEMPOTENT)

    assert outcomes_without_varying_parts(through) == outcomes_without_varying_parts(direct)
    assert client.read(cluster_proxy.bootstrap, topic, RECORDS) == [record.value for record in good]


def test_every_broker_of_a_cluster_is_used_through_its_own_port(cluster: Kafka, cluster_proxy: ProxyProcess) -> None:
    topic = create_topic(cluster.bootstrap, UNVALIDATED, partitions=6, replicas=3)
    producer = Producer({"bootstrap.servers": cluster_proxy.bootstrap})
    for partition in range(6):
        for _ in range(10):
            producer.produce(topic, b"v", b"k", partition=partition)
    assert producer.flush(60) == 0

    brokers = producer.list_topics(topic, 10).brokers
    assert {(b.host, b.port) for b in brokers.values()} == {
        ("127.0.0.1", cluster_proxy.broker_port(node.node_id)) for node in cluster.nodes
    }
    assert len(Confluent().read(cluster_proxy.bootstrap, topic, 60)) == 60
