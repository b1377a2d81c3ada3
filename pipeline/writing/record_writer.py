"""Writes a partition's records in transactions, with librdkafka."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as CommittedOffset

from sluicegate.dead_letters.delivery_reports import serve
from sluicegate.dead_letters.writable import why_unwritable
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing.progress import SECONDS

MOST_RECORDS = 100_000
MOST_BYTES = 64 << 20
"""The limits of a transaction: the number and the bytes of the source's records."""
ROOM_BYTES = 1024
"""The overhead of a batch with one record, in bytes."""
_BATCH_BYTES = 1_000_000

Headers = Sequence[tuple[bytes, bytes | None]]


class CannotWriteTopic(PipelineError):
    """Raised if a record or a topic cannot be written. The message gives the reason and a fix."""


def require_no_obstacles(obstacles: Collection[str], why: str) -> None:
    """Raise CannotWriteTopic, with all obstacles after their common reason `why`, if there are any."""
    if obstacles:
        raise CannotWriteTopic(f"nothing was written because {why}:\n" + "\n".join(obstacles))


@dataclass(frozen=True, slots=True)
class Writing:
    """The settings for writing a partition's records.

    `group_id` is the group that stores their progress. `largest_batch` is the topics' maximum batch size (bytes).
    `topics` determines how to connect. `into` names the destination in messages.
    """

    group_id: str
    largest_batch: int
    codec: str
    topics: Topics
    into: str

    @property
    def batch_bytes(self) -> int:
        """Return the uncompressed size at which a batch is sent, which ensures that no batch exceeds the limit."""
        return min(_BATCH_BYTES, self.largest_batch - ROOM_BYTES)


def transactional_id(of: TopicPartition, group_id: str) -> str:
    """Return the transactional id of the producer that writes a source partition's records."""
    return f"{group_id}.{of.partition}"


_LARGEST_RECORD_BYTES = 100_000_000
_LINGER_MS = 50
TRANSACTION_TIMEOUT_MS = 60_000
"""A broker aborts a transaction that stays open longer than this."""


def librdkafka_writer(of: TopicPartition, writing: Writing, consumer: Consumer) -> "LibrdkafkaWriter":
    """Return a writer for a partition's records. `consumer` belongs to the group that stores their progress."""
    producer = Producer(
        {
            **writing.topics.for_librdkafka,
            "transactional.id": transactional_id(of, writing.group_id),
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
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
    return LibrdkafkaWriter(producer, consumer)


class LibrdkafkaWriter:
    """A producer with a transactional id, which sends several batches at once.

    A new producer fences an earlier producer with the same id and aborts its open transaction. Every method may raise
    KafkaException. `ends` contains the last offset written to each partition.
    """

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
        """Queue a record. `timestamp` is in ms. Raises CannotWriteTopic if librdkafka would change the record."""
        if (reason := why_unwritable(timestamp, headers)) is not None:
            raise CannotWriteTopic(f"a record for {to}: {reason}")
        carried: list[Any] = [(name.decode(), held) for name, held in headers]
        while True:
            try:
                self._producer.produce(
                    to.topic, value, key, to.partition, self._delivered, timestamp=timestamp, headers=carried
                )
                return
            except BufferError:
                serve(lambda: self._producer.poll(0.1), self._failed)

    def commit(self, reached: CommittedOffset) -> None:
        """Wait until the broker has stored all records, then commit the offset and the transaction."""
        serve(lambda: self._producer.flush(SECONDS), self._failed)
        if self._failed:
            raise KafkaException(self._failed[0])
        self._producer.send_offsets_to_transaction([reached], self._group, SECONDS)
        self._producer.commit_transaction(SECONDS)

    def abort(self) -> None:
        """Abort the transaction. The writer cannot be used afterwards."""
        self._producer.abort_transaction(SECONDS)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(error)
        else:
            self.ends[TopicPartition(message.topic(), message.partition())] = message.offset()
