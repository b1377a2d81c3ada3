"""Runs a Python client library: python_client.py LIBRARY BOOTSTRAP COMMAND TOPIC [COUNT]; see programs.py."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

import aiokafka
import aiokafka.admin
import confluent_kafka
import confluent_kafka.admin
import kafka
import kafka.admin

SECONDS = 60
VALUES = range(10)


def wrong_timestamps() -> list[int]:
    now = time.time_ns() // 1_000_000
    return [now, now * 1_000_000, now]


class Confluent:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self.where = {"bootstrap.servers": bootstrap}
        self.topic = topic

    def produce_default(self) -> None:
        self._send(confluent_kafka.Producer(self.where), "default")

    def produce_strict(self) -> None:
        strict = {"enable.idempotence": True, "transactional.id": self.topic, "compression.type": "zstd"}
        producer = confluent_kafka.Producer(self.where | strict)
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        self._send(producer, "strict")
        producer.commit_transaction(SECONDS)

    def _send(self, producer: confluent_kafka.Producer, label: str) -> None:
        errors: list[object] = []
        for i in VALUES:
            producer.produce(
                self.topic, f"{label} {i}".encode(), b"k", on_delivery=lambda error, _: error and errors.append(error)
            )
        assert producer.flush(SECONDS) == 0
        assert not errors, errors

    def consume(self, count: int) -> None:
        group = {"group.id": f"{self.topic}-group", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer(self.where | group)
        consumer.subscribe([self.topic])
        for _ in range(count):
            message = consumer.poll(SECONDS)
            assert message is not None
            assert message.error() is None, message.error()
            print(message.value().decode())
        consumer.close()

    def topics(self) -> None:
        print("\n".join(confluent_kafka.admin.AdminClient(self.where).list_topics(timeout=SECONDS).topics))

    def create(self) -> None:
        admin = confluent_kafka.admin.AdminClient(self.where)
        for future in admin.create_topics([confluent_kafka.admin.NewTopic(self.topic, 2, 1)]).values():
            future.result(SECONDS)

    def reject(self) -> None:
        producer = confluent_kafka.Producer(self.where | {"linger.ms": 500})
        for timestamp in wrong_timestamps():
            producer.produce(
                self.topic,
                b"v",
                b"k",
                timestamp=timestamp,
                on_delivery=lambda error, _: print(error.name(), error.str()),
            )
        assert producer.flush(SECONDS) == 0


class KafkaPython:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic

    def produce_default(self) -> None:
        self._send(kafka.KafkaProducer(bootstrap_servers=self.bootstrap), "default")

    def produce_strict(self) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self.bootstrap, acks="all", transactional_id=self.topic, compression_type="zstd"
        )
        producer.init_transactions()
        producer.begin_transaction()
        self._send(producer, "strict")
        producer.commit_transaction()

    def _send(self, producer: kafka.KafkaProducer, label: str) -> None:
        for i in VALUES:
            producer.send(self.topic, f"{label} {i}".encode(), b"k").get(SECONDS)

    def consume(self, count: int) -> None:
        consumer = kafka.KafkaConsumer(
            self.topic,
            bootstrap_servers=self.bootstrap,
            group_id=f"{self.topic}-group",
            auto_offset_reset="earliest",
            consumer_timeout_ms=SECONDS * 1000,
        )
        for _ in range(count):
            print(next(consumer).value.decode())
        consumer.close()

    def topics(self) -> None:
        print("\n".join(kafka.KafkaConsumer(bootstrap_servers=self.bootstrap).topics()))

    def create(self) -> None:
        admin = kafka.admin.KafkaAdminClient(bootstrap_servers=self.bootstrap)
        admin.create_topics([kafka.admin.NewTopic(self.topic, 2, 1)])

    def reject(self) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=500)
        futures = [producer.send(self.topic, b"v", b"k", timestamp_ms=timestamp) for timestamp in wrong_timestamps()]
        for future in futures:
            try:
                future.get(SECONDS)
            except kafka.errors.KafkaError as error:
                print(f"{type(error).__name__}: {error}")


class Aio:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic

    def produce_default(self) -> None:
        asyncio.run(self._send("default"))

    def produce_strict(self) -> None:
        asyncio.run(self._send("strict", transactional_id=self.topic, compression_type="zstd"))

    async def _send(self, label: str, **settings: str) -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=self.bootstrap, **settings) as producer:
            if settings:
                await producer.begin_transaction()
            for i in VALUES:
                await producer.send_and_wait(self.topic, f"{label} {i}".encode(), b"k")
            if settings:
                await producer.commit_transaction()

    def consume(self, count: int) -> None:
        asyncio.run(self._consume(count))

    async def _consume(self, count: int) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            self.topic,
            bootstrap_servers=self.bootstrap,
            group_id=f"{self.topic}-group",
            auto_offset_reset="earliest",
        )
        async with consumer:
            for _ in range(count):
                print((await asyncio.wait_for(consumer.getone(), SECONDS)).value.decode())

    def topics(self) -> None:
        asyncio.run(self._administer(lambda admin: admin.list_topics()))

    def create(self) -> None:
        new = aiokafka.admin.NewTopic(self.topic, 2, 1)
        asyncio.run(self._administer(lambda admin: admin.create_topics([new])))

    async def _administer(self, act: Callable[[aiokafka.admin.AIOKafkaAdminClient], Awaitable[object]]) -> None:
        admin = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            found = await act(admin)
            if isinstance(found, Sequence):
                print("\n".join(found))
        finally:
            await admin.close()

    def reject(self) -> None:
        asyncio.run(self._reject())

    async def _reject(self) -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=500) as producer:
            futures = [
                await producer.send(self.topic, b"v", b"k", timestamp_ms=timestamp, partition=0)
                for timestamp in wrong_timestamps()
            ]
            for result in await asyncio.gather(*futures, return_exceptions=True):
                print(f"{type(result).__name__}: {result}")


LIBRARIES = {"confluent-kafka": Confluent, "kafka-python": KafkaPython, "aiokafka": Aio}

if __name__ == "__main__":
    library, bootstrap, command, topic, *count = sys.argv[1:]
    client = LIBRARIES[library](bootstrap, topic)
    getattr(client, command.replace("-", "_"))(*map(int, count))
