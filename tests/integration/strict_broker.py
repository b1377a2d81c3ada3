"""Provides a cluster without automatic topic creation, and readers of the records that the proxy wrote to it."""

import time
from collections.abc import Iterator

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.kafka import Kafka
from tests.oracle.kafka_java import KAFKA_NEW

_SECONDS = 30
Kept = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@pytest.fixture(scope="package")
def strict_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield two brokers. The second is not a controller, so the first keeps working while the second is suspended."""
    settings = {"auto.create.topics.enable": "false", "broker.session.timeout.ms": "60000"}
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("strict"), settings=settings)
    try:
        kafka.start()
        kafka.add_node()
        yield kafka
    finally:
        kafka.stop()


def create_topic_on_node(kafka: Kafka, node_id: int, name: str, **settings: str) -> str:
    """Create a topic of one partition with the given leader."""
    config = {key.replace("_", "."): value for key, value in settings.items()}
    admin = AdminClient({"bootstrap.servers": kafka.nodes[0].address})
    new = NewTopic(name, 1, replica_assignment=[[node_id]], config=config)
    for future in admin.create_topics([new]).values():
        future.result(_SECONDS)
    return name


def read_records(kafka: Kafka, topic: str, count: int) -> list[Kept]:
    """Wait for `count` records of a topic; return key, value and headers of all records."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": kafka.nodes[0].address, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        _, end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), _SECONDS)
        found: list[Kept] = []
        until = time.monotonic() + _SECONDS
        while len(found) < max(count, end) and time.monotonic() < until:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append((message.key(), message.value(), message.headers() or []))
        return found
    finally:
        consumer.close()
