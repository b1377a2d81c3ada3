"""Runs producers that number their records by partition and remember acknowledged records. They are never restarted."""

from collections.abc import Callable
from random import Random
from typing import Any, Protocol, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.broker.background import Background
from tests.broker.eventually import eventually

PARTITIONS = 3
TIMEOUT_SECONDS = 240
"""How long clients retry and tests wait for them (s). Generous, for a busy machine."""
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_MOST_WAITING = 2000
_PAUSE_SECONDS = 0.05
_ONE_HOUR_AHEAD_IS_ALLOWED_MS = 10**14
_REJECTED = (KafkaError.INVALID_TIMESTAMP, KafkaError.INVALID_RECORD)
"""The error codes of bad records and of the valid records in the same batch (KIP-467)."""
Records = dict[int, list[int]]
"""Numbers by partition, in order."""


class LoadClient(Protocol):
    """One client that works in its own thread from `with` until `stop`."""

    name: str
    trouble: str | None
    """The error from which the client could not recover, or an empty string."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def progress_check(self) -> Callable[[], bool]:
        """Return a function that reports whether an operation started after this call has succeeded."""
        ...

    def stop(self) -> None:
        """Start no more operations and complete the pending ones. Raises AssertionError if one fails."""
        ...


def settings_of(reaching: dict[str, Any], chance: Random) -> dict[str, Any]:
    """Return common settings: long timeouts and fast reconnects. `reaching`: the settings that reach the proxy."""
    return {
        **reaching,
        "linger.ms": 5,
        "compression.type": chance.choice(_CODECS),
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "retry.backoff.ms": 50,
        "retry.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 2000,
        "log_level": 0,
    }


class _ProducerLoad:
    """The common part: a producer that works in a thread, and the numbers of `records` that count."""

    def __init__(
        self, name: str, records: Records, reaching: dict[str, Any], topic: str, seed: int, settings: dict[str, Any]
    ) -> None:
        self.name = name
        self.trouble: str | None = None
        self._records = records
        self._topic = topic
        self._chance = Random(seed)
        self._producer = Producer(settings_of(reaching, self._chance) | settings)
        self._background = Background(self._run)

    @property
    def count(self) -> int:
        return sum(map(len, self._records.values()))

    def __enter__(self) -> Self:
        self._background.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._background.stop()
        self._producer.purge()
        del self._producer  # librdkafka disconnects when the last reference is gone

    def _run(self) -> None:
        raise NotImplementedError


class IdempotentLoad(_ProducerLoad):
    """Sends a few records at a time; all must be acknowledged eventually."""

    def __init__(self, reaching: dict[str, Any], topic: str, seed: int) -> None:
        self.acknowledged: Records = {partition: [] for partition in range(PARTITIONS)}
        self._sent = dict.fromkeys(range(PARTITIONS), 0)
        settings = {"enable.idempotence": True, "delivery.timeout.ms": TIMEOUT_SECONDS * 1000}
        super().__init__("idempotent", self.acknowledged, reaching, topic, seed, settings)

    def progress_check(self) -> Callable[[], bool]:
        sent = dict(self._sent)
        return lambda: all(len(self.acknowledged[partition]) > sent[partition] for partition in sent)

    def stop(self) -> None:
        self._background.stop()
        left = self._producer.flush(TIMEOUT_SECONDS)
        assert left == 0, f"{left} records of the idempotent producer were never acknowledged"
        assert self.trouble is None, self.trouble
        assert {p: len(numbers) for p, numbers in self.acknowledged.items()} == self._sent

    def _run(self) -> None:
        while not self._background.is_stopped and self.trouble is None:
            if len(self._producer) < _MOST_WAITING:
                for _ in range(self._chance.randrange(1, 20)):
                    self._send(self._chance.randrange(PARTITIONS))
            self._producer.poll(0)
            self._background.wait_and_continue(_PAUSE_SECONDS)

    def _send(self, partition: int) -> None:
        number = self._sent[partition]
        self._sent[partition] += 1
        self._producer.produce(
            self._topic, str(number).encode(), random_value(self._chance), partition, on_delivery=self._delivered
        )

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged[message.partition()].append(int(message.value()))
        else:
            self.trouble = f"an idempotent producer's record was not delivered: {error}"


class TransactionalLoad(_ProducerLoad):
    """Commits transactions of a few records and aborts some; only committed records count."""

    def __init__(self, reaching: dict[str, Any], topic: str, seed: int) -> None:
        self.committed: Records = {partition: [] for partition in range(PARTITIONS)}
        self.commits = self.aborts = 0
        self._number = 0
        settings = {"transactional.id": topic, "transaction.timeout.ms": TIMEOUT_SECONDS * 1000}
        super().__init__("transactional", self.committed, reaching, topic, seed, settings)

    def progress_check(self) -> Callable[[], bool]:
        two_more = self.commits + 2  # the first operation may have started earlier
        return lambda: self.commits >= two_more

    def stop(self) -> None:
        self._background.stop()
        assert self.trouble is None, self.trouble

    def _run(self) -> None:
        try:
            self._until_done(lambda: self._producer.init_transactions(TIMEOUT_SECONDS))
            while not self._background.is_stopped:
                self._one_transaction()
        except KafkaException as error:
            self.trouble = f"a transactional producer failed: {error}"

    def _one_transaction(self) -> None:
        self._producer.begin_transaction()
        sent: Records = {partition: [] for partition in range(PARTITIONS)}
        try:
            for _ in range(self._chance.randrange(1, 40)):
                partition = self._chance.randrange(PARTITIONS)
                sent[partition].append(self._number)
                self._producer.produce(self._topic, str(self._number).encode(), random_value(self._chance), partition)
                self._number += 1
                self._producer.poll(0)
            self._background.wait_and_continue(_PAUSE_SECONDS)
            if self._chance.random() < 0.1:
                # librdkafka 2.16 fails if it aborts before its partitions are added, even without the proxy.
                self._producer.flush(TIMEOUT_SECONDS)
                self._abort()
                return
            self._until_done(lambda: self._producer.commit_transaction(TIMEOUT_SECONDS))
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._abort()
            return
        for partition, numbers in sent.items():
            self.committed[partition] += numbers
        self.commits += 1

    def _abort(self) -> None:
        self._until_done(lambda: self._producer.abort_transaction(TIMEOUT_SECONDS))
        self.aborts += 1

    def _until_done(self, call: Callable[[], None]) -> None:
        """Repeat a call after a retriable error, as librdkafka documents."""
        while True:
            try:
                call()
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return


class RejectedLoad:
    """Sends only records with a timestamp that no topic allows; each must be rejected for that, and none stored."""

    def __init__(self, reaching: dict[str, Any], topic: str, seed: int) -> None:
        self.name = "rejected"
        self.trouble: str | None = None
        self.rejected = 0
        self._sent = 0
        self._topic = topic
        self._chance = Random(seed)
        settings = {"enable.idempotence": False, "delivery.timeout.ms": TIMEOUT_SECONDS * 1000}
        self._producer = Producer(settings_of(reaching, self._chance) | settings)
        self._background = Background(self._run)

    def __enter__(self) -> Self:
        self._background.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._background.stop()
        self._producer.purge()
        del self._producer

    def progress_check(self) -> Callable[[], bool]:
        sent = self._sent
        return lambda: self.rejected > sent

    def stop(self) -> None:
        self._background.stop()
        left = self._producer.flush(TIMEOUT_SECONDS)
        assert left == 0, f"{left} bad records got no response"
        assert self.trouble is None, self.trouble
        assert self.rejected == self._sent

    def _run(self) -> None:
        while not self._background.is_stopped and self.trouble is None:
            if len(self._producer) < _MOST_WAITING // 10:
                for partition in range(PARTITIONS):
                    self._producer.produce(
                        self._topic,
                        random_value(self._chance),
                        partition=partition,
                        timestamp=_ONE_HOUR_AHEAD_IS_ALLOWED_MS,
                        on_delivery=self._on_delivery,
                    )
                    self._sent += 1
            self._producer.poll(0)
            self._background.wait_and_continue(_PAUSE_SECONDS)

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None and error.code() in _REJECTED:
            self.rejected += 1
        else:
            self.trouble = f"the response to a bad record was {error}"


def random_value(chance: Random) -> bytes:
    """Return a value: mostly small, sometimes half a TCP segment or several segments."""
    return chance.randbytes(chance.choice((0, 10, 100, 700, 5000)))


def wait_for_progress(loads: list[LoadClient]) -> None:
    """Wait until each client completed a new operation. Raises AssertionError with the first error of a client."""
    waiting = [(load, load.progress_check()) for load in loads]

    def have_all_made_progress() -> bool:
        for load, _ in waiting:
            assert load.trouble is None, load.trouble
        return all(is_done() for _, is_done in waiting)

    eventually(have_all_made_progress, TIMEOUT_SECONDS, "progress of every client")
