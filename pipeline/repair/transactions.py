"""Records of one partition, written elsewhere exactly once.

Each transaction holds some records and, as a group's committed offset, how far in the source they reach. A run that is
killed leaves a transaction open, which the next one's first call aborts, and then goes on from the offset committed.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.repair.progress import SECONDS, Progress, group, progress_in
from sluicegate.pipeline.repair.settings import ROOM_BYTES

MOST_RECORDS = 100_000
_MOST_BYTES = 64 << 20
BATCH_BYTES = 1_000_000
_LARGEST_RECORD_BYTES = 100_000_000
_FENCED = frozenset(
    {KafkaError._FENCED, KafkaError._FATAL, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}
)
"""What librdkafka raises once another producer has begun with the same transactional.id."""

Header = tuple[str, str | bytes | None]


class CannotWrite(Exception):
    """A record cannot be written where it is to go, or that topic is not what it was taken for."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How the records of a partition are written: `group_id` keeps their progress, `batch_bytes` is the largest batch
    that is taken, `client` are librdkafka's settings, `into` says where they go, for people.
    """

    group_id: str
    batch_bytes: int
    codec: str
    client: Mapping[str, Any]
    into: str


@contextmanager
def transactions(of: TopicPartition, writing: Writing) -> Iterator["Transactions"]:
    """For the records of a partition; what an earlier run has left open is aborted, and what is left open where
    something is raised. Raises CannotWrite.
    """
    producer = Producer(
        {
            **writing.client,
            "transactional.id": transactional_id(of, writing.group_id),
            "compression.type": writing.codec,
            "linger.ms": 50,
            "message.max.bytes": _LARGEST_RECORD_BYTES,
            "batch.num.messages": 100_000,
            "batch.size": min(BATCH_BYTES, writing.batch_bytes - ROOM_BYTES),  # not compressed, so a batch always fits
            "queue.buffering.max.messages": 2 * MOST_RECORDS,
            "queue.buffering.max.kbytes": 4 * _MOST_BYTES >> 10,
        }
    )
    try:
        producer.init_transactions(SECONDS)
        with group(writing.group_id, writing.client) as consumer:
            found = Transactions(of, producer, consumer, writing.into)
            try:
                yield found
            except BaseException:
                found.abort()
                raise
    except KafkaException as error:
        raise CannotWrite(f"{of} to {writing.into}: {_why(error.args[0], writing)}") from error


def _why(error: KafkaError, writing: Writing) -> str:
    if error.code() not in _FENCED:
        return str(error.str())
    return (
        f"another run writes with the same transactional.id ({writing.group_id}.*) and has taken over; what this one "
        "committed stays. Wait until that run has ended, then give this command again"
    )


def transactional_id(of: TopicPartition, group_id: str) -> str:
    """Of the producer that writes a source's partition."""
    return f"{group_id}.{of.partition}"


def is_enough(records: int, size: int) -> bool:
    """Whether that is enough for one transaction; `size` in bytes."""
    return records >= MOST_RECORDS or size >= _MOST_BYTES


class Transactions:
    """One behind the other, by one producer. `ends`: the last offset that was written to each partition."""

    def __init__(self, of: TopicPartition, producer: Producer, consumer: Consumer, into: str) -> None:
        self._of = of
        self._producer = producer
        self._consumer = consumer
        self._group = consumer.consumer_group_metadata()
        self._into = into
        self._failed: list[KafkaError] = []
        self._is_open = False
        self._open_records = 0
        self._open_bytes = 0
        self.ends: dict[TopicPartition, int] = {}

    def before(self) -> Progress | None:
        """What earlier runs have written; None where there were none."""
        return progress_in(self._consumer, [self._of]).get(self._of)

    def begin(self) -> None:
        """The next one."""
        self._producer.begin_transaction()
        self._is_open = True

    def produce(
        self,
        to: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Sequence[Header] | None,
    ) -> None:
        """A record of the open transaction; `timestamp` is in ms, and not 0, which clients take for none."""
        carried = None if headers is None else list(headers)
        while True:
            try:
                self._producer.produce(
                    to.topic, value, key, to.partition, self._delivered, timestamp=timestamp, headers=carried
                )
                return
            except BufferError:
                self._serve(lambda: self._producer.poll(0.1))

    def add(self, records: int, size: int) -> bool:
        """So many records, of so many bytes, came from the source; whether that is enough for one transaction."""
        self._serve(lambda: self._producer.poll(0))
        self._open_records += records
        self._open_bytes += size
        return is_enough(self._open_records, self._open_bytes)

    def commit(self, progress: Progress) -> None:
        """What was produced, with how far it reaches. Raises KafkaException where the broker did not take all of it."""
        self._serve(lambda: self._producer.flush(SECONDS))
        if self._failed:
            raise KafkaException(self._failed[0])
        self._producer.send_offsets_to_transaction([progress.committed(self._of)], self._group, SECONDS)
        self._producer.commit_transaction(SECONDS)
        self._is_open = False
        self._open_records = self._open_bytes = 0

    def abort(self) -> None:
        """What is open is not written, and readers wait for it no more; where even that fails, for a while."""
        if self._is_open:
            self._is_open = False
            with suppress(KafkaException):
                self._producer.abort_transaction(SECONDS)

    @staticmethod
    def _serve(call: Callable[[], object]) -> None:
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

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(error)
        else:
            self.ends[TopicPartition(message.topic(), message.partition())] = message.offset()
