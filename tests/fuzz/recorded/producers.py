"""Runs real clients that write a few records with a codec and one fixed timestamp, so that no clock affects their
bytes.

`python -m tests.fuzz.recorded.producers LIBRARY BOOTSTRAP TOPIC CODEC TIME` runs a Python library. Java's producer is
tests/integration/JavaProducer.java.
"""

import asyncio
import sys
from collections.abc import Callable

import aiokafka
import confluent_kafka
import kafka

_SECONDS = 60
_LINGER_MS = 500
# The values are similar, so that they compress well, and contain the fields that rules check.
VALUES = [b'{"n": %d, "s": "text", "l": ["a", "b"]}' % i for i in range(3)]
KEY = b"key"
HEADERS = [("h", b"v"), ("empty", b"")]


def produce_with_librdkafka(bootstrap: str, topic: str, codec: str, time: int) -> None:
    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": _LINGER_MS}
    _by_librdkafka(confluent_kafka.Producer(settings), topic, time)


def produce_in_librdkafka_transaction(bootstrap: str, topic: str, codec: str, time: int) -> None:
    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "transactional.id": topic}
    producer = confluent_kafka.Producer(settings | {"linger.ms": _LINGER_MS})
    producer.init_transactions(_SECONDS)
    producer.begin_transaction()
    _by_librdkafka(producer, topic, time)
    producer.commit_transaction(_SECONDS)


def _by_librdkafka(producer: confluent_kafka.Producer, topic: str, time: int) -> None:
    errors: list[object] = []
    for value in VALUES:
        producer.produce(
            topic,
            value,
            KEY,
            partition=0,
            timestamp=time,
            headers=HEADERS,
            on_delivery=lambda error, _: error and errors.append(error),
        )
    assert producer.flush(_SECONDS) == 0
    assert not errors, errors


def produce_with_kafka_python(bootstrap: str, topic: str, codec: str, time: int) -> None:
    _by_kafka_python(bootstrap, topic, codec, time, HEADERS)


def produce_with_kafka_python_as_of_0_10(bootstrap: str, topic: str, codec: str, time: int) -> None:
    """Messages of magic 1, which have no headers."""
    _by_kafka_python(bootstrap, topic, codec, time, [], api_version=(0, 10))


def produce_with_kafka_python_as_of_0_9(bootstrap: str, topic: str, codec: str, _time: int) -> None:
    """Messages of magic 0, which have no timestamps."""
    _by_kafka_python(bootstrap, topic, codec, None, [], api_version=(0, 9))


def _by_kafka_python(
    bootstrap: str, topic: str, codec: str, time: int | None, headers: list[tuple[str, bytes]], **more: object
) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=_LINGER_MS,
        **(more or {"enable_idempotence": True}),
    )
    sent = [producer.send(topic, v, KEY, headers=headers, partition=0, timestamp_ms=time) for v in VALUES]
    for future in sent:
        future.get(_SECONDS)
    producer.close()


def produce_with_aiokafka(bootstrap: str, topic: str, codec: str, time: int) -> None:
    asyncio.run(_by_aiokafka(bootstrap, topic, codec, time))


async def _by_aiokafka(bootstrap: str, topic: str, codec: str, time: int) -> None:
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=_LINGER_MS,
        enable_idempotence=True,
    )
    async with producer:
        sent = [
            await producer.send(topic, value, KEY, headers=HEADERS, partition=0, timestamp_ms=time) for value in VALUES
        ]
        await asyncio.gather(*sent)


LIBRARIES: dict[str, Callable[[str, str, str, int], None]] = {
    "librdkafka": produce_with_librdkafka,
    "librdkafka-transactional": produce_in_librdkafka_transaction,
    "kafka-python": produce_with_kafka_python,
    "aiokafka": produce_with_aiokafka,
}
OLD_LIBRARIES: dict[str, Callable[[str, str, str, int], None]] = {
    "kafka-python-0.10": produce_with_kafka_python_as_of_0_10,
    "kafka-python-0.9": produce_with_kafka_python_as_of_0_9,
}
"""Clients for a broker that still accepts old formats."""

if __name__ == "__main__":
    library, given_bootstrap, given_topic, given_codec, moment = sys.argv[1:]
    (LIBRARIES | OLD_LIBRARIES)[library](given_bootstrap, given_topic, given_codec, int(moment))
