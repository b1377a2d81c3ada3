"""One task of a repair: a partition's records, corrected, to the clean topic, exactly once.

Each transaction holds some records and, as a group's committed offset, how far in the source they reach. A run that is
killed leaves a transaction open, which the next one's first call aborts, and then goes on from the offset committed.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ClientPartition

from pipeline.kafka.cluster import OffsetRange
from pipeline.repair.correction import NAMES, RepairHeader, correct
from pipeline.repair.plan import PartitionPlan
from pipeline.source.options import source_options
from pipeline.source.reading import read_rows

_RECORDS_A_TRANSACTION = 100_000
_BYTES_A_TRANSACTION = 64 << 20
_LARGEST_RECORD_BYTES = 100_000_000
_SECONDS = 60.0
_PAUSE_SECONDS = 0.2
_COORDINATOR_MOVES = frozenset(
    {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
)
_COLUMNS = "key,value,offset,timestamp,headers"


class CannotWrite(Exception):
    """A record cannot be written to the clean topic, or that topic is not what the plan takes it for."""


@dataclass(frozen=True, slots=True)
class Written:
    """What one task did."""

    topic: str
    partition: int
    records: int
    corrected: int


def group_of(target: str, topic_id: str) -> str:
    """The group whose committed offsets tell how far a repair into a topic has come; one of the same name that is made
    anew has another id, and begins anew.
    """
    return f"sluicegate-repair.{target}.{topic_id}"


def write_partition(
    plan: PartitionPlan, group_id: str, options: Mapping[str, str], client: Mapping[str, str]
) -> Written:
    """`options` are the raw source's, `client` librdkafka's. Raises CannotWrite and what reading raises."""
    of = plan.source.of
    producer = Producer(
        {
            **client,
            "transactional.id": f"{group_id}.{of.partition}",
            "compression.type": plan.codec,
            "linger.ms": 50,
            "message.max.bytes": _LARGEST_RECORD_BYTES,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 2 * _RECORDS_A_TRANSACTION,
            "queue.buffering.max.kbytes": 4 * _BYTES_A_TRANSACTION >> 10,
        }
    )
    try:
        producer.init_transactions(_SECONDS)
        with _group(group_id, client) as group:
            start = max(plan.source.start, _committed(group, plan))
            writer = _Writer(plan, producer, group.consumer_group_metadata())
            if start < plan.source.end:
                reading = source_options({**options, "subscribe": of.topic, "columns": _COLUMNS})
                writer.write(read_rows(reading, OffsetRange(of, start, plan.source.end)))
    except KafkaException as error:
        raise CannotWrite(f"{of} to {plan.to}: {error.args[0].str()}") from error
    return Written(of.topic, of.partition, writer.records, writer.corrected)


def committed_offset(plan: PartitionPlan, group_id: str, client: Mapping[str, str]) -> int:
    """The next offset in the source that has not been written; -1 where nothing has. Raises KafkaException."""
    with _group(group_id, client) as group:
        return _committed(group, plan)


@contextmanager
def _group(group_id: str, client: Mapping[str, str]) -> Iterator[Consumer]:
    """The group whose offsets tell of progress; nothing is consumed with it."""
    consumer = Consumer({**client, "group.id": group_id})
    try:
        yield consumer
    finally:
        consumer.close()


def _committed(group: Consumer, plan: PartitionPlan) -> int:
    place = [ClientPartition(plan.source.of.topic, plan.source.of.partition)]
    end = time.monotonic() + _SECONDS
    while True:
        try:
            (found,) = group.committed(place, timeout=_SECONDS)
            if found.error is not None:
                raise KafkaException(found.error)  # not to be taken for nothing written yet
            return -1 if found.offset == OFFSET_INVALID else int(found.offset)
        except KafkaException as error:
            if error.args[0].code() not in _COORDINATOR_MOVES or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)  # nothing announces that a coordinator is ready


class _Writer:
    """Writes Arrow rows in transactions."""

    def __init__(self, plan: PartitionPlan, producer: Producer, group: Any) -> None:
        self._plan = plan
        self._producer = producer
        self._group = group
        self._origin = f"{plan.source.of.topic}/{plan.source.of.partition}/"
        self._failed: list[str] = []
        self._open_records = 0
        self._open_bytes = 0
        self.records = 0
        self.corrected = 0

    def write(self, batches: Iterator[pa.RecordBatch]) -> None:
        """All of them, and that the range is done."""
        self._producer.begin_transaction()
        for batch in batches:
            for start in range(0, len(batch), _RECORDS_A_TRANSACTION // 10):
                rows = batch.slice(start, _RECORDS_A_TRANSACTION // 10)
                self._produce(rows)
                if self._open_records >= _RECORDS_A_TRANSACTION or self._open_bytes >= _BYTES_A_TRANSACTION:
                    self._commit(rows["offset"][-1].as_py() + 1)
                    self._producer.begin_transaction()
        self._commit(self._plan.source.end)

    def _commit(self, reached: int) -> None:
        of = self._plan.source.of
        self._producer.flush(_SECONDS)
        if self._failed:
            self._producer.abort_transaction(_SECONDS)
            raise CannotWrite(f"{of} to {self._plan.to}: {self._failed[0]}")
        place = ClientPartition(of.topic, of.partition, reached)
        self._producer.send_offsets_to_transaction([place], self._group, _SECONDS)
        self._producer.commit_transaction(_SECONDS)
        self._open_records = self._open_bytes = 0

    def _produce(self, rows: pa.RecordBatch) -> None:
        timestamps, offsets = rows["timestamp"].to_numpy(), rows["offset"].to_numpy()
        found = correct(timestamps, offsets, self._plan.clock, self._plan.rules)
        columns = [rows[name].to_pylist() for name in ("key", "value", "headers")]
        corrected = found.solved & (found.after != timestamps)
        numbers = (
            found.after.tolist(),
            offsets.tolist(),
            timestamps.tolist(),
            found.kinds.tolist(),
            corrected.tolist(),
        )
        to, partition = self._plan.to, self._plan.source.of.partition
        for key, value, headers, after, offset, before, kind, is_corrected in zip(*columns, *numbers, strict=True):
            if after == 0:
                raise CannotWrite(
                    f"{self._plan.source.of} offset {offset}: a timestamp of 0 cannot be written, and nothing around "
                    "it tells of a better one; give one by --assume-ms"
                )
            carried: list[tuple[str, Any]] | None = (
                [(h["key"], h["value"]) for h in headers] if headers is not None else None
            )
            if is_corrected:
                carried = [*(carried or ()), *self._told(offset, before, kind)]
            while True:
                try:
                    self._producer.produce(to, value, key, partition, self._delivered, timestamp=after, headers=carried)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.poll(0)
        self._open_records += len(rows)
        self._open_bytes += rows.nbytes
        self.records += len(rows)
        self.corrected += int(corrected.sum())

    def _told(self, offset: int, before: int, kind: int) -> list[tuple[str, bytes]]:
        return [
            (RepairHeader.ORIGIN, f"{self._origin}{offset}".encode()),
            (RepairHeader.TIMESTAMP, str(before).encode()),
            (RepairHeader.KIND, NAMES[kind].encode()),
        ]

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(error.str())
