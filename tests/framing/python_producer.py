"""Produces 500 records of all sizes with a Python library: LIBRARY BOOTSTRAP TOPIC CODEC[:LEVEL]..."""

import asyncio
import random
import sys
from collections.abc import Callable

import aiokafka
import confluent_kafka
import kafka

_CHANCE = random.Random(1)
VALUES = [b"v" * (i * 7 % 900) if i % 3 else _CHANCE.randbytes(i * 5 % 700) for i in range(500)]


def produce_with_librdkafka(bootstrap: str, topic: str, codec: str, level: str) -> None:
    errors: list[object] = []
    settings: dict[str, str | int] = {"bootstrap.servers": bootstrap, "linger.ms": 200, "compression.type": codec}
    producer = confluent_kafka.Producer(settings | ({"compression.level": int(level)} if level else {}))
    for value in VALUES:
        producer.produce(topic, value, b"k", headers={"h": b"v"}, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    assert not any(errors), errors


def produce_with_kafka_python(bootstrap: str, topic: str, codec: str, _level: str) -> None:
    compression = None if codec == "none" else codec
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, linger_ms=200, compression_type=compression)
    sent = [producer.send(topic, value, b"k", headers=[("h", b"v")]) for value in VALUES]
    for future in sent:
        future.get(60)
    producer.close()


def produce_with_aiokafka(bootstrap: str, topic: str, codec: str, _level: str) -> None:
    asyncio.run(_aio(bootstrap, topic, codec))


async def _aio(bootstrap: str, topic: str, codec: str) -> None:
    compression = None if codec == "none" else codec
    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=200, compression_type=compression
    ) as producer:
        await asyncio.gather(*[await producer.send(topic, value, b"k", headers=[("h", b"v")]) for value in VALUES])


LIBRARIES: dict[str, Callable[[str, str, str, str], None]] = {
    "librdkafka": produce_with_librdkafka,
    "kafka-python": produce_with_kafka_python,
    "aiokafka": produce_with_aiokafka,
}

if __name__ == "__main__":
    library, address, name, *codecs = sys.argv[1:]
    for wanted in codecs:
        codec_name, _, codec_level = wanted.partition(":")
        LIBRARIES[library](address, name, codec_name, codec_level)
        print(f"{library} {wanted}", flush=True)
