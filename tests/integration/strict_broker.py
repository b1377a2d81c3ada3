"""A cluster that makes no topic by itself, and readers of what the proxy wrote into it."""

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
    """Two brokers, the second of which is no controller: it may stand still, and the first goes on."""
    settings = {"auto.create.topics.enable": "false", "broker.session.timeout.ms": "60000"}
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("strict"), settings=settings)
    try:
        kafka.start()
        kafka.add_node()
        yield kafka
    finally:
        kafka.stop()


def topic_on(kafka: Kafka, node_id: int, name: str, **settings: str) -> str:
    """A topic of one partition, led by one broker."""
    config = {key.replace("_", "."): value for key, value in settings.items()}
    admin = AdminClient({"bootstrap.servers": kafka.nodes[0].address})
    new = NewTopic(name, 1, replica_assignment=[[node_id]], config=config)
    for future in admin.create_topics([new]).values():
        future.result(_SECONDS)
    return name


def kept_in(kafka: Kafka, topic: str, count: int) -> list[Kept]:
    """Key, value and headers of the first so many records of a topic, and of all that are there by then."""
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
