"""Runs idempotent and transactional producers, each of which sends one bad record among many in flight: its timestamp
is bad or its key is missing.

StatefulProducer.java describes the records. Each producer returns its lines: (record or transaction, outcome).
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import aiokafka
import confluent_kafka

from tests.integration.aio import run_and_collect_sockets
from tests.integration.java import java_tool

IDEMPOTENT, TRANSACTIONAL = "idempotent", "transactional"
BY_TIME, BY_KEY = "time", "key"
BY_TIME_ALWAYS = "time, always"
"""A bad record in every transaction; only for Java."""
RECORDS = 40
_SECONDS = 60
Lines = list[tuple[str, str]]
Drive = Callable[[str, str, str, str], Lines]
"""Returns the lines for (bootstrap, topic, mode, defect)."""


def numbered_record(i: int, bad: str | None) -> tuple[bytes | None, int]:
    """Return key and timestamp (ms) of a record; `bad` is the defect of the record in the middle."""
    now = time.time_ns() // 1_000_000
    if i != RECORDS // 2 or bad is None:
        return b"key", now
    return (None, now) if bad == BY_KEY else (b"key", now * 1_000_000)


def java_producer(version: str, codec: str = "none") -> Drive:
    def run_producer(bootstrap: str, topic: str, mode: str, bad: str) -> Lines:
        program = str(Path(__file__).with_name("StatefulProducer.java"))
        output = java_tool(program, bootstrap, topic, mode, str(RECORDS), bad, codec, version=version)
        return [(what, outcome) for what, _, outcome in (line.partition(" ") for line in output.splitlines())]

    return run_producer


def produce_with_librdkafka(bootstrap: str, topic: str, mode: str, bad: str) -> Lines:
    lines: Lines = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 0,
            "batch.num.messages": 1,
            "enable.idempotence": True,
            "log_level": 0,
            **({"transactional.id": topic, "message.timeout.ms": 8000} if mode == TRANSACTIONAL else {}),
        }
    )

    def send(name: str, wrong: str | None) -> bool:
        outcomes: dict[int, str] = {}
        for i in range(RECORDS):
            key, time_ms = numbered_record(i, wrong)
            producer.produce(
                topic,
                f"{name}{i}".encode(),
                key,
                partition=0,
                timestamp=time_ms,
                on_delivery=lambda error, _, i=i: outcomes.__setitem__(i, "ok" if error is None else error.name()),
            )
        assert producer.flush(_SECONDS) == 0
        lines.extend((f"{name}{i}", outcomes[i]) for i in range(RECORDS))
        return set(outcomes.values()) == {"ok"}

    def run_transaction(name: str, wrong: str | None, commit: bool) -> None:
        try:
            producer.begin_transaction()
            sound = send(name, wrong)
            if sound and commit:
                producer.commit_transaction(_SECONDS)
                outcome = "committed"
            else:
                producer.abort_transaction(_SECONDS)
                outcome = "aborted"
        except confluent_kafka.KafkaException as error:
            outcome = error.args[0].name()
            producer.abort_transaction(_SECONDS)
        lines.append((f"transaction-{name}", outcome))

    if mode == IDEMPOTENT:
        send("a", bad)
        return lines
    producer.init_transactions(_SECONDS)
    for name, wrong, commit in (("a", bad, False), ("b", None, True), ("c", None, False), ("d", None, True)):
        run_transaction(name, wrong, commit)
    return lines


def produce_with_aiokafka(bootstrap: str, topic: str, mode: str, bad: str) -> Lines:
    return run_and_collect_sockets(_aio(bootstrap, topic, mode, bad))


async def _aio(bootstrap: str, topic: str, mode: str, bad: str) -> Lines:
    lines: Lines = []
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        linger_ms=0,
        max_batch_size=1,
        enable_idempotence=True,
        transactional_id=topic if mode == TRANSACTIONAL else None,
    )

    async def send(name: str, wrong: str | None) -> bool:
        sent = [numbered_record(i, wrong) for i in range(RECORDS)]
        futures = [
            await producer.send(topic, f"{name}{i}".encode(), key, partition=0, timestamp_ms=time_ms)
            for i, (key, time_ms) in enumerate(sent)
        ]
        results = await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), _SECONDS)
        outcomes = [type(r).__name__ if isinstance(r, BaseException) else "ok" for r in results]
        lines.extend((f"{name}{i}", outcome) for i, outcome in enumerate(outcomes))
        return set(outcomes) == {"ok"}

    async def run_transaction(name: str, wrong: str | None, commit: bool) -> None:
        try:
            await producer.begin_transaction()
            sound = await send(name, wrong)
            await (producer.commit_transaction() if sound and commit else producer.abort_transaction())
            outcome = "committed" if sound and commit else "aborted"
        except aiokafka.errors.KafkaError as error:
            outcome = type(error).__name__
            await producer.abort_transaction()
        lines.append((f"transaction-{name}", outcome))

    await producer.start()
    try:
        if mode == IDEMPOTENT:
            await send("a", bad)
        else:
            for name, wrong, commit in (("a", bad, False), ("b", None, True), ("c", None, False), ("d", None, True)):
                await run_transaction(name, wrong, commit)
    finally:
        await producer.stop()
    return lines
