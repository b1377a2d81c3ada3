"""Writers of a partition's records: librdkafka, and an exact one for records that librdkafka cannot write."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as CommittedOffset

from sluicegate.pipeline.errors import PipelineError
from sluicegate.pipeline.kafka.cluster import KafkaCluster, TopicPartition
from sluicegate.pipeline.kafka.transactional_producer import TransactionalProducer
from sluicegate.pipeline.topics import Topics
from sluicegate.pipeline.writing.progress import SECONDS
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.writing import NewRecord

MOST_RECORDS = 100_000
MOST_BYTES = 64 << 20
"""Limits of a transaction, in records and bytes of the source."""
ROOM_BYTES = 1024
"""Overhead of a batch with one record."""
_BATCH_BYTES = 1_000_000

Headers = Sequence[tuple[bytes, bytes | None]]


class CannotWriteTopic(PipelineError):
    """A record or a topic cannot be written; the text gives reason and fix."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How the records of a partition are written. `group_id`: group of their progress. `largest_batch`: the topics'
    limit in bytes. `topics`: how to connect. `into`: the destination, for messages. `is_exact`: some records are not
    writable by librdkafka (see `librdkafka_takes`), so our own producer writes all.
    """

    group_id: str
    largest_batch: int
    codec: str
    topics: Topics
    into: str
    is_exact: bool = False

    @property
    def batch_bytes(self) -> int:
        """Return the size at which a batch is sent, before compression, so that no batch exceeds the limit."""
        return min(_BATCH_BYTES, self.largest_batch - ROOM_BYTES)


class TransactionalWriter(Protocol):
    """A producer with a transactional id. A new one fences an earlier producer of the same id and aborts its open
    transaction.

    Every method may raise KafkaException, TopicTrouble and BrokerUnreachable.
    """

    ends: dict[TopicPartition, int]
    """The last offset written to each partition."""

    def begin(self) -> None:
        """Begin a transaction."""

    def write(
        self, to: TopicPartition, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers
    ) -> None:
        """Write a record in the transaction; `timestamp` is in ms. Raises CannotWriteTopic."""

    def commit(self, reached: CommittedOffset) -> None:
        """Commit the offset in the transaction, then the transaction."""

    def abort(self) -> None:
        """Abort the transaction. The writer is not used afterwards."""


def librdkafka_takes(timestamp: int, headers: Headers) -> bool:
    """Return whether librdkafka writes the record unchanged: it treats a timestamp of 0 as none, and header names as
    UTF-8 C strings.
    """
    return timestamp != 0 and all(_is_text(name) for name, _ in headers)


def _is_text(name: bytes) -> bool:
    try:
        return "\0" not in name.decode()
    except UnicodeDecodeError:
        return False


def transactional_id(of: TopicPartition, group_id: str) -> str:
    """Return the id of the producer of a source's partition; both writers share it, so either resumes the
    other's work.
    """
    return f"{group_id}.{of.partition}"


_LARGEST_RECORD_BYTES = 100_000_000
_LINGER_MS = 50


@contextmanager
def librdkafka_writer(of: TopicPartition, writing: Writing, consumer: Consumer) -> Iterator["LibrdkafkaWriter"]:
    """Open a writer for a partition's records. `consumer`: of the group of their progress."""
    producer = Producer(
        {
            **writing.topics.for_librdkafka,
            "transactional.id": transactional_id(of, writing.group_id),
            "compression.type": writing.codec,
            "linger.ms": _LINGER_MS,
            "message.max.bytes": _LARGEST_RECORD_BYTES,
            "batch.num.messages": MOST_RECORDS,
            "batch.size": writing.batch_bytes,
            # Room for a whole transaction, and for the last read that exceeds its limits.
            "queue.buffering.max.messages": 2 * MOST_RECORDS,
            "queue.buffering.max.kbytes": 4 * MOST_BYTES >> 10,
        }
    )
    producer.init_transactions(SECONDS)
    yield LibrdkafkaWriter(producer, consumer)


class LibrdkafkaWriter:
    """A `TransactionalWriter` for records that `librdkafka_takes`; it sends several batches at once."""

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
        """Queue a record. Raises CannotWriteTopic if librdkafka would change it."""
        if not librdkafka_takes(timestamp, headers):
            raise CannotWriteTopic(
                f"a record for {to}: librdkafka cannot write a timestamp of 0, or a header name that is not UTF-8 or "
                "contains a zero byte"
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
        """Wait until the broker has stored all records, then commit."""
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
    """Process delivery reports. Raises KafkaException. The binding raises a fatal error as a KafkaError, which is not
    an exception, or as the cause of a SystemError.
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


_FRAMING_BYTES = 100
"""Upper bound of a record's overhead, and of a header's."""


@contextmanager
def exact_writer(of: TopicPartition, writing: Writing) -> Iterator["ExactWriter"]:
    """Open a writer for a partition's records, with its own connections."""
    with KafkaCluster(*writing.topics.client, SECONDS) as cluster:
        producer = TransactionalProducer(cluster, transactional_id(of, writing.group_id), Codec[writing.codec.upper()])
        yield ExactWriter(producer, writing.group_id, writing.batch_bytes)


@dataclass(slots=True)
class _Batch:
    records: list[NewRecord] = field(default_factory=list)
    size: int = 0


class ExactWriter:
    """A `TransactionalWriter` for any record: our own producer sends one request at a time."""

    def __init__(self, producer: TransactionalProducer, group_id: str, batch_bytes: int) -> None:
        self._producer = producer
        self._group_id = group_id
        self._batch_bytes = batch_bytes
        self._unsent: dict[TopicPartition, _Batch] = {}
        self.ends: dict[TopicPartition, int] = {}

    def begin(self) -> None:
        """Do nothing: the producer begins a transaction with its first request."""

    def write(
        self, to: TopicPartition, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers
    ) -> None:
        """Add a record to its partition's batch, which is sent when the next record does not fit."""
        size = _FRAMING_BYTES + len(key or b"") + len(value or b"")
        size += sum(_FRAMING_BYTES + len(name) + len(held or b"") for name, held in headers)
        batch = self._unsent.setdefault(to, _Batch())
        if batch.records and batch.size + size > self._batch_bytes:
            self._send(to)
            batch = self._unsent.setdefault(to, _Batch())
        batch.records.append(NewRecord(timestamp, key, value, tuple(headers)))
        batch.size += size

    def commit(self, reached: CommittedOffset) -> None:
        """Send all batches, then commit."""
        for to in list(self._unsent):
            self._send(to)
        of = TopicPartition(reached.topic, reached.partition)
        self._producer.commit(self._group_id, of, reached.offset, reached.metadata or "")

    def abort(self) -> None:
        """Abort the transaction."""
        self._producer.abort()

    def _send(self, to: TopicPartition) -> None:
        self.ends[to] = self._producer.send(to, self._unsent.pop(to).records)
