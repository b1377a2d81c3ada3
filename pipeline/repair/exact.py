"""Records of one partition, written elsewhere exactly once and byte by byte, by a producer of our own.

Client libraries write no header whose name is not UTF-8. The transactional id, the group and what is committed are
those of `sluicegate.pipeline.repair.transactions`, so either goes on where the other was killed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from confluent_kafka import Consumer, KafkaException

from sluicegate.pipeline.kafka.cluster import Cluster, TopicPartition, TopicTrouble
from sluicegate.pipeline.kafka.connection import BrokerUnreachable
from sluicegate.pipeline.kafka.transactional_producer import TransactionalProducer
from sluicegate.pipeline.repair.progress import Progress, group, progress_in
from sluicegate.pipeline.repair.settings import ROOM_BYTES
from sluicegate.pipeline.repair.transactions import (
    BATCH_BYTES,
    CannotWrite,
    Writing,
    is_enough,
    transactional_id,
)
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.writing import NewRecord

_RECORD_BYTES = 100  # more than what a record takes beside its key, value and headers


@contextmanager
def exact_transactions(of: TopicPartition, writing: Writing, cluster: Cluster) -> Iterator["ExactTransactions"]:
    """As `sluicegate.pipeline.repair.transactions.transactions`. Raises CannotWrite."""
    try:
        producer = TransactionalProducer(cluster, transactional_id(of, writing.group_id), Codec[writing.codec.upper()])
        with group(writing.group_id, writing.client) as consumer:
            found = ExactTransactions(of, producer, consumer, writing)
            try:
                yield found
            except BaseException:
                found.abort()
                raise
    except KafkaException as error:
        raise CannotWrite(f"{of} to {writing.into}: {error.args[0].str()}") from error
    except (TopicTrouble, BrokerUnreachable) as error:
        raise CannotWrite(f"{of} to {writing.into}: {error}") from error


class ExactTransactions:
    """One behind the other, by one producer. `ends`: the last offset that was written to each partition."""

    def __init__(
        self, of: TopicPartition, producer: TransactionalProducer, consumer: Consumer, writing: Writing
    ) -> None:
        self._of = of
        self._producer = producer
        self._consumer = consumer
        self._group_id = writing.group_id
        self._batch_bytes = min(BATCH_BYTES, writing.batch_bytes - ROOM_BYTES)  # not compressed, so a batch always fits
        self._waiting: dict[TopicPartition, list[NewRecord]] = {}
        self._waiting_bytes: dict[TopicPartition, int] = {}
        self._open_records = 0
        self._open_bytes = 0
        self.ends: dict[TopicPartition, int] = {}

    def before(self) -> Progress | None:
        """What earlier runs have written; None where there were none."""
        return progress_in(self._consumer, [self._of]).get(self._of)

    def begin(self) -> None:
        """The next one, which begins with what is sent."""

    def produce(
        self,
        to: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Sequence[tuple[str | bytes, str | bytes | None]] | None,
    ) -> None:
        """A record of the open transaction; `timestamp` is in ms."""
        carried = tuple((_bytes(name), None if held is None else _bytes(held)) for name, held in headers or ())
        size = _RECORD_BYTES + len(key or b"") + len(value or b"")
        size += sum(len(name) + len(held or b"") + _RECORD_BYTES for name, held in carried)
        if self._waiting_bytes.get(to, 0) + size > self._batch_bytes:
            self._send(to)
        self._waiting.setdefault(to, []).append(NewRecord(timestamp, key, value, carried))
        self._waiting_bytes[to] = self._waiting_bytes.get(to, 0) + size

    def add(self, records: int, size: int) -> bool:
        """So many records, of so many bytes, came from the source; whether that is enough for one transaction."""
        self._open_records += records
        self._open_bytes += size
        return is_enough(self._open_records, self._open_bytes)

    def commit(self, progress: Progress) -> None:
        """What was produced, with how far it reaches."""
        for to in list(self._waiting):
            self._send(to)
        told = progress.committed(self._of)
        self._producer.commit(self._group_id, self._of, told.offset, told.metadata or "")
        self._open_records = self._open_bytes = 0

    def abort(self) -> None:
        """What is open is not written, and readers wait for it no more; where even that fails, for a while."""
        with suppress(TopicTrouble, BrokerUnreachable):
            self._producer.abort()

    def _send(self, to: TopicPartition) -> None:
        records = self._waiting.pop(to, [])
        self._waiting_bytes.pop(to, None)
        if records:
            self.ends[to] = self._producer.send(to, records)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
