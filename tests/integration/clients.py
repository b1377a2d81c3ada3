"""Runs four client libraries with one interface: send records and return the outcome of each; read a topic."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import aiokafka
import confluent_kafka
import kafka

from tests.integration.aio import run_and_collect_sockets
from tests.integration.java import java_tool
from tests.integration.left_sockets import sockets_left_behind

PLAIN, IDEMPOTENT, TRANSACTIONAL = "plain", "idempotent", "transactional"
_LINGER_MS = 300
_SECONDS = 60


@dataclass(frozen=True)
class Sent:
    """One record to send; the timestamp is in ms."""

    value: str
    timestamp: int


class Client(Protocol):
    """`send` puts all records into one batch of partition 0; each outcome is `ok` or the client's own error."""

    name: str

    def send(self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, mode: str) -> list[str]: ...

    def read(self, bootstrap: str, topic: str, count: int) -> list[str]: ...


class Confluent:
    """librdkafka through confluent-kafka."""

    name = "confluent-kafka"

    def send(self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, mode: str) -> list[str]:
        outcomes: dict[int, str] = {}
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "linger.ms": _LINGER_MS,
                "enable.idempotence": mode != PLAIN,
                **({"transactional.id": f"{topic}-{codec}"} if mode == TRANSACTIONAL else {}),
            }
        )
        if mode == TRANSACTIONAL:
            producer.init_transactions(_SECONDS)
            producer.begin_transaction()
        for i, record in enumerate(records):
            producer.produce(
                topic,
                record.value.encode(),
                b"key",
                partition=0,
                timestamp=record.timestamp,
                on_delivery=lambda error, _, i=i: outcomes.__setitem__(i, "ok" if error is None else str(error)),
            )
        assert producer.flush(_SECONDS) == 0
        if mode == TRANSACTIONAL:
            rejected = any(outcome != "ok" for outcome in outcomes.values())
            (producer.abort_transaction if rejected else producer.commit_transaction)(_SECONDS)
        return [outcomes[i] for i in range(len(records))]

    def read(self, bootstrap: str, topic: str, count: int) -> list[str]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{topic}-readers",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe([topic])
        values: list[str] = []
        while len(values) < count:
            message = consumer.poll(_SECONDS)
            assert message is not None, f"only {len(values)} of {count} records arrived"
            if message.error() is None:
                values.append(message.value().decode())
        consumer.close()
        return values


class Aio:
    """aiokafka."""

    name = "aiokafka"

    def send(self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, mode: str) -> list[str]:
        return run_and_collect_sockets(self._send(bootstrap, topic, records, codec, mode))

    async def _send(self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, mode: str) -> list[str]:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            linger_ms=_LINGER_MS,
            enable_idempotence=mode != PLAIN,
            transactional_id=f"{topic}-{codec}" if mode == TRANSACTIONAL else None,
        )
        await producer.start()
        try:
            if mode == TRANSACTIONAL:
                await producer.begin_transaction()
            futures = [
                await producer.send(topic, r.value.encode(), b"key", partition=0, timestamp_ms=r.timestamp)
                for r in records
            ]
            results = await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), _SECONDS)
            if mode == TRANSACTIONAL:
                rejected = any(isinstance(result, BaseException) for result in results)
                await (producer.abort_transaction() if rejected else producer.commit_transaction())
        finally:
            await producer.stop()
        return [_outcome(result) for result in results]

    def read(self, bootstrap: str, topic: str, count: int) -> list[str]:
        return run_and_collect_sockets(self._read(bootstrap, topic, count))

    async def _read(self, bootstrap: str, topic: str, count: int) -> list[str]:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=f"{topic}-readers",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        try:
            return [(await asyncio.wait_for(consumer.getone(), _SECONDS)).value.decode() for _ in range(count)]
        finally:
            await consumer.stop()


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"

    def send(self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, mode: str) -> list[str]:
        with sockets_left_behind():
            return self._send(bootstrap, topic, records, codec, mode)

    def _send(self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, mode: str) -> list[str]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            linger_ms=_LINGER_MS,
            acks="all",
            enable_idempotence=mode != PLAIN,
            transactional_id=f"{topic}-{codec}" if mode == TRANSACTIONAL else None,
        )
        try:
            if mode == TRANSACTIONAL:
                producer.init_transactions()
                producer.begin_transaction()
            futures = [
                producer.send(topic, r.value.encode(), b"key", partition=0, timestamp_ms=r.timestamp) for r in records
            ]
            outcomes = []
            for future in futures:
                try:
                    future.get(_SECONDS)
                    outcomes.append("ok")
                except kafka.errors.KafkaError as error:
                    outcomes.append(_outcome(error))
            if mode == TRANSACTIONAL:
                rejected = any(outcome != "ok" for outcome in outcomes)
                (producer.abort_transaction if rejected else producer.commit_transaction)()
            return outcomes
        finally:
            producer.close(timeout=5)

    def read(self, bootstrap: str, topic: str, count: int) -> list[str]:
        with sockets_left_behind():
            return self._read(bootstrap, topic, count)

    def _read(self, bootstrap: str, topic: str, count: int) -> list[str]:
        consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=f"{topic}-readers",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            consumer_timeout_ms=_SECONDS * 1000,
        )
        try:
            return [next(consumer).value.decode() for _ in range(count)]
        finally:
            consumer.close()


class Java:
    """Kafka's own client: a small producer for times and modes, and the console consumer to read."""

    name = "java"

    def send(self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, mode: str) -> list[str]:
        lines = "".join(f"{record.timestamp} {record.value}\n" for record in records)
        program = str(Path(__file__).with_name("JavaProducer.java"))
        done = java_tool(program, bootstrap, topic, codec, mode, str(_LINGER_MS), stdin=lines)
        return done.splitlines()

    def read(self, bootstrap: str, topic: str, count: int) -> list[str]:
        tool = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        arguments = ("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning")
        limits = (
            "--max-messages",
            str(count),
            "--timeout-ms",
            str(_SECONDS * 1000),
            "--isolation-level",
            "read_committed",
        )
        return java_tool(tool, *arguments, *limits).splitlines()


def console_produce(bootstrap: str, topic: str, values: Sequence[str], codec: str) -> None:
    """Kafka's console producer."""
    tool = "org.apache.kafka.tools.ConsoleProducer"
    java_tool(
        tool, "--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec, stdin="\n".join(values)
    )


def _outcome(result: object) -> str:
    return f"{type(result).__name__}: {result}" if isinstance(result, BaseException) else "ok"


CLIENTS: tuple[Client, ...] = (Confluent(), Aio(), KafkaPython(), Java())
