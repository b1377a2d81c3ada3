"""A range of a topic is read within bounds. If there are too many records, the newest are read, with the start of the
gap-free part.
"""

import uuid

import pytest
from confluent_kafka import Producer
from pydantic import SecretStr

from sluicegate.config.tls import UpstreamTls
from sluicegate.config.upstream import Sasl, Upstream
from sluicegate.config.values.address import parse_host_port
from sluicegate.proxy.state.range_read import RangeRead, read_range
from sluicegate.proxy.state.topic_description import TopicUnavailable
from tests.integration.secure_brokers import TOPIC, GuardedBroker, client_login
from tests.integration.topics import create_topic

START, STEP = 1_700_000_000_000, 1000
EVERYTHING = 0, START * 2


@pytest.fixture
def topic(kafka_bootstrap: str) -> str:
    """Return a topic with sixty records, one per second, whose values are their numbers. Partition 2 is empty."""
    name = create_topic(kafka_bootstrap, {"retention.ms": "-1"}, partitions=3)
    producer = Producer({"bootstrap.servers": kafka_bootstrap})
    for number in range(60):
        producer.produce(name, str(number).encode(), partition=number % 2, timestamp=START + number * STEP)
    assert producer.flush(30) == 0
    return name


def test_a_range_read_returns_only_records_within_its_time_bounds(kafka_bootstrap: str, topic: str) -> None:
    upstream = Upstream(bootstrap=(parse_host_port(kafka_bootstrap),))

    def read(times_ms: tuple[int, int], most: int = 1000, most_bytes: int = 1 << 20) -> tuple[RangeRead, list[int]]:
        values: list[bytes] = []
        result = read_range(upstream, topic, times_ms, most, most_bytes, values.append)
        return result, sorted(map(int, values))

    assert read(EVERYTHING) == (RangeRead(60, 0), list(range(60)))
    part = START + 10 * STEP, START + 20 * STEP
    assert read(part) == (RangeRead(10, part[0]), list(range(10, 20)))
    assert read((START + 100 * STEP, START + 200 * STEP)) == (RangeRead(0, START + 100 * STEP), [])

    newest, values = read(EVERYTHING, most=20)
    assert values == list(range(40, 60))
    assert newest.complete_since_ms == START + 41 * STEP  # the first record in the other partition

    cut, values = read(EVERYTHING, most_bytes=1)
    assert (cut, len(values)) == (RangeRead(1, None), 1)


@pytest.mark.long
def test_reading_a_range_requires_read_permission_on_the_topic_and_none_on_a_group(guarded: GuardedBroker) -> None:
    """Alice may read the topic, bob may only describe it; nobody has a right to a group."""
    address = {"bootstrap.servers": guarded.kafka.bootstrap, "ssl.ca.location": str(guarded.authority.file)}
    producer = Producer(client_login("alice", "secret") | address)
    mark = uuid.uuid4().bytes
    producer.produce(TOPIC, mark)
    assert producer.flush(30) == 0

    def read_as(user: str) -> list[bytes]:
        sasl = Sasl(mechanism="PLAIN", username=user, password=SecretStr("secret"))
        tls = UpstreamTls(ca_file=str(guarded.authority.file))
        upstream = Upstream(bootstrap=(parse_host_port(guarded.kafka.bootstrap),), tls=tls, sasl=sasl)
        values: list[bytes] = []
        read_range(upstream, TOPIC, EVERYTHING, 1000, 1 << 20, values.append)
        return values

    assert mark in read_as("alice")
    with pytest.raises(TopicUnavailable, match="authoriz"):
        read_as("bob")
