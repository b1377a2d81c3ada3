"""Writes records byte by byte, by the pipeline's own producer: one request at a time, and every record as it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import TopicPartition as CommittedOffset

from sluicegate.pipeline.jobs.repair.progress import SECONDS
from sluicegate.pipeline.jobs.repair.record_writer import Headers, Writing, transactional_id
from sluicegate.pipeline.kafka.cluster import Cluster, TopicPartition
from sluicegate.pipeline.kafka.transactional_producer import TransactionalProducer
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.writing import NewRecord

_FRAMING_BYTES = 100
"""More than a record takes beside its key, value and headers, and a header beside its name and value."""


@contextmanager
def exact_writer(of: TopicPartition, writing: Writing) -> Iterator["ExactWriter"]:
    """For the records of a partition, on connections of its own."""
    with Cluster(*writing.topics.client, SECONDS) as cluster:
        producer = TransactionalProducer(cluster, transactional_id(of, writing.group_id), Codec[writing.codec.upper()])
        yield ExactWriter(producer, writing.group_id, writing.batch_bytes)


@dataclass(slots=True)
class _Batch:
    records: list[NewRecord] = field(default_factory=list)
    size: int = 0


class ExactWriter:
    """A `RecordWriter` for any record."""

    def __init__(self, producer: TransactionalProducer, group_id: str, batch_bytes: int) -> None:
        self._producer = producer
        self._group_id = group_id
        self._batch_bytes = batch_bytes
        self._unsent: dict[TopicPartition, _Batch] = {}
        self.ends: dict[TopicPartition, int] = {}

    def begin(self) -> None:
        """Do nothing: the producer begins a transaction with the first request of one."""

    def write(
        self, to: TopicPartition, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers
    ) -> None:
        """Add a record to its partition's batch, which is sent when the next one does not fit."""
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
