"""Reads topics with a Python library in parallel: LIBRARY BOOTSTRAP LAST SECONDS TOPIC...

Prints a line of JSON for each topic: offsets and values of partition 0 up to the value LAST, and the error that ended
the read. Reading also stops after SECONDS without new records.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import aiokafka
import confluent_kafka
import kafka

Records = list[tuple[int, str]]


def read_with_librdkafka(bootstrap: str, last: str, seconds: float, topic: str, found: Records) -> str | None:
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, "log_level": 0}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    try:
        while not found or found[-1][1] != last:
            message = consumer.poll(seconds)
            if message is None:
                return "nothing comes"
            if message.error() is not None:
                return str(message.error())
            found.append((message.offset(), _text(message.value())))
    finally:
        consumer.close()
    return None


def read_with_kafka_python(bootstrap: str, last: str, seconds: float, topic: str, found: Records) -> str | None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
    where = kafka.TopicPartition(topic, 0)
    consumer.assign([where])
    consumer.seek(where, 0)
    end = time.monotonic() + seconds
    try:
        while (not found or found[-1][1] != last) and time.monotonic() < end:
            for messages in consumer.poll(500).values():
                found += [(message.offset, _text(message.value)) for message in messages]
                end = time.monotonic() + seconds
    finally:
        consumer.close()
    return None if found and found[-1][1] == last else "nothing comes"


def read_with_aiokafka(bootstrap: str, last: str, seconds: float, topic: str, found: Records) -> str | None:
    asyncio.run(_aio(bootstrap, last, seconds, topic, found))
    return None


async def _aio(bootstrap: str, last: str, seconds: float, topic: str, found: Records) -> None:
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    try:
        where = aiokafka.TopicPartition(topic, 0)
        consumer.assign([where])
        consumer.seek(where, 0)
        while not found or found[-1][1] != last:
            message = await asyncio.wait_for(consumer.getone(), seconds)
            found.append((message.offset, _text(message.value)))
    finally:
        await consumer.stop()


def _text(value: bytes | None) -> str:
    return (value or b"").decode("latin-1")


LIBRARIES: dict[str, Callable[[str, str, float, str, Records], str | None]] = {
    "librdkafka": read_with_librdkafka,
    "kafka-python": read_with_kafka_python,
    "aiokafka": read_with_aiokafka,
}


def read(library: str, bootstrap: str, last: str, seconds: float, topic: str) -> str:
    found: Records = []
    try:
        error = LIBRARIES[library](bootstrap, last, seconds, topic, found)
    except Exception as raised:  # each library has its own errors
        error = f"{type(raised).__name__}: {raised}"
    return json.dumps({"topic": topic, "records": found, "error": error})


if __name__ == "__main__":
    chosen, address, last_value, timeout, *topics = sys.argv[1:]
    with ThreadPoolExecutor(8) as several:
        for line in several.map(lambda topic: read(chosen, address, last_value, float(timeout), topic), topics):
            print(line, flush=True)
