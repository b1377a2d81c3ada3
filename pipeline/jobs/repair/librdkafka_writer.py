"""Writes records by librdkafka, which sends several batches at once. It takes most records, not all."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as CommittedOffset

from sluicegate.pipeline.jobs.repair.progress import SECONDS
from sluicegate.pipeline.jobs.repair.record_writer import (
    MOST_BYTES,
    MOST_RECORDS,
    CannotWrite,
    Headers,
    Writing,
    librdkafka_takes,
    transactional_id,
)
from sluicegate.pipeline.kafka.cluster import TopicPartition

_LARGEST_RECORD_BYTES = 100_000_000
_LINGER_MS = 50


@contextmanager
def librdkafka_writer(of: TopicPartition, writing: Writing, consumer: Consumer) -> Iterator["LibrdkafkaWriter"]:
    """For the records of a partition. `consumer`: of the group that keeps their progress."""
    producer = Producer(
        {
            **writing.topics.for_librdkafka,
            "transactional.id": transactional_id(of, writing.group_id),
            "compression.type": writing.codec,
            "linger.ms": _LINGER_MS,
            "message.max.bytes": _LARGEST_RECORD_BYTES,
            "batch.num.messages": MOST_RECORDS,
            "batch.size": writing.batch_bytes,
            # Room for a whole transaction and what is read in one piece beyond its limits.
            "queue.buffering.max.messages": 2 * MOST_RECORDS,
            "queue.buffering.max.kbytes": 4 * MOST_BYTES >> 10,
        }
    )
    producer.init_transactions(SECONDS)
    yield LibrdkafkaWriter(producer, consumer)


class LibrdkafkaWriter:
    """A `RecordWriter` for records that `librdkafka_takes`."""

    def __init__(self, producer: Producer, consumer: Consumer) -> None:
        self._producer = producer
        self._group = consumer.consumer_group_metadata()
        self._failed: list[KafkaError] = []
        self.ends: dict[TopicPartition, int] = {}

    def begin(self) -> None:
        """Begin a transaction."""
        self._producer.begin_transaction()

    def write(
        self, to: TopicPartition, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers
    ) -> None:
        """Queue a record. Raises CannotWrite where librdkafka would write another one."""
        if not librdkafka_takes(timestamp, headers):
            raise CannotWrite(
                f"a record for {to}: librdkafka writes no timestamp of 0, and no header whose name is not UTF-8 or has "
                "a zero byte in it"
            )
        carried: list[Any] = [(name.decode(), held) for name, held in headers]
        while True:
            try:
                self._producer.produce(
                    to.topic, value, key, to.partition, self._delivered, timestamp=timestamp, headers=carried
                )
                return
            except BufferError:
                _served(lambda: self._producer.poll(0.1))

    def commit(self, reached: CommittedOffset) -> None:
        """Wait for the broker to store all records, then commit."""
        _served(lambda: self._producer.flush(SECONDS))
        if self._failed:
            raise KafkaException(self._failed[0])
        self._producer.send_offsets_to_transaction([reached], self._group, SECONDS)
        self._producer.commit_transaction(SECONDS)

    def abort(self) -> None:
        """Abort the transaction."""
        self._producer.abort_transaction(SECONDS)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(error)
        else:
            self.ends[TopicPartition(message.topic(), message.partition())] = message.offset()


def _served(call: Callable[[], object]) -> None:
    """Deliver reports. Raises KafkaException, also for a fatal error, which librdkafka's binding raises as a
    KafkaError, though that is no exception, or as the cause of a SystemError.
    """
    try:
        call()
    except:
        error: object = sys.exc_info()[1]
        fatal = error.__cause__ if isinstance(error, SystemError) else error
        if isinstance(fatal, KafkaError):
            raise KafkaException(fatal) from None
        if isinstance(fatal, KafkaException):
            raise fatal from None
        raise
