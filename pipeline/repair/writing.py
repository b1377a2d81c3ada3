"""One task of a repair: a partition's records, corrected, to the clean topic, exactly once.

Each transaction holds some records and, as a group's committed offset, how far in the source they reach. A run that is
killed leaves a transaction open, which the next one's first call aborts, and then goes on from the offset committed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException, Producer

from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.kafka.emptiness import DataLoss
from sluicegate.pipeline.repair.correction import NAMES, RepairHeader, correct
from sluicegate.pipeline.repair.plan import PartitionPlan
from sluicegate.pipeline.repair.progress import SECONDS, Progress, group, progress_in
from sluicegate.pipeline.repair.settings import ROOM_BYTES
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.reading import read_rows

_RECORDS_A_TRANSACTION = 100_000
_BYTES_A_TRANSACTION = 64 << 20
_BATCH_BYTES = 1_000_000
_LARGEST_RECORD_BYTES = 100_000_000
_COLUMNS = "key,value,offset,timestamp,headers_binary"


class CannotWrite(Exception):
    """A record cannot be written to the clean topic, or that topic is not what the plan takes it for."""


@dataclass(frozen=True, slots=True)
class Written:
    """What one task did."""

    topic: str
    partition: int
    records: int
    corrected: int


def write_partition(
    plan: PartitionPlan,
    plan_id: str,
    group_id: str,
    batch_bytes: int,
    options: Mapping[str, str],
    client: Mapping[str, str],
) -> Written:
    """`batch_bytes`: the largest batch that the clean topic takes; `options` are the raw source's, `client` those of
    librdkafka. Raises CannotWrite and what reading raises.
    """
    of = plan.source.of
    producer = Producer(
        {
            **client,
            "transactional.id": f"{group_id}.{of.partition}",
            "compression.type": plan.codec,
            "linger.ms": 50,
            "message.max.bytes": _LARGEST_RECORD_BYTES,
            "batch.num.messages": 100_000,
            "batch.size": min(_BATCH_BYTES, batch_bytes - ROOM_BYTES),  # not compressed, so a batch always fits
            "queue.buffering.max.messages": 2 * _RECORDS_A_TRANSACTION,
            "queue.buffering.max.kbytes": 4 * _BYTES_A_TRANSACTION >> 10,
        }
    )
    try:
        producer.init_transactions(SECONDS)
        with group(group_id, client) as consumer:
            before = progress_in(consumer, [of]).get(of) or Progress(plan.source.start, 0, plan_id)
            start = max(plan.source.start, before.reached)
            writer = _Writer(plan, producer, consumer.consumer_group_metadata(), before)
            if start < plan.source.end:
                reading = source_options({**options, "subscribe": of.topic, "columns": _COLUMNS})
                writer.write(read_rows(reading, OffsetRange(of, start, plan.source.end)))
    except DataLoss as loss:
        raise CannotWrite(
            f"{loss} since the plan was made (retention?); what is written stays. Make a new plan, with another --out "
            "and --to"
        ) from loss
    except KafkaException as error:
        raise CannotWrite(f"{of} to {plan.to}: {error.args[0].str()}") from error
    return Written(of.topic, of.partition, writer.records, writer.corrected)


class _Writer:
    """Writes Arrow rows in transactions."""

    def __init__(self, plan: PartitionPlan, producer: Producer, group: Any, before: Progress) -> None:
        """`before`: what earlier runs have written."""
        self._plan = plan
        self._before = before
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
        written = self._before.records + self.records
        planned = self._plan.contents
        if written > planned.records or (written < planned.records and not planned.may_shrink):
            self._producer.abort_transaction(SECONDS)
            raise CannotWrite(
                f"{self._plan.source.of} to {self._plan.to}: the plan counted {planned.records:,} records in "
                f"offsets {self._plan.source.start} to {self._plan.source.end - 1}, and {written:,} came when read "
                "again; what is committed stays, the rest is not written. Were records deleted "
                "since? Then make a new plan, with another --out and --to; if not, start again"
            )
        self._commit(self._plan.source.end)

    def _commit(self, reached: int) -> None:
        of = self._plan.source.of
        self._producer.flush(SECONDS)
        if self._failed:
            self._producer.abort_transaction(SECONDS)
            raise CannotWrite(f"{of} to {self._plan.to}: {self._failed[0]}")
        place = Progress(reached, self._before.records + self.records, self._before.plan_id).committed(of)
        self._producer.send_offsets_to_transaction([place], self._group, SECONDS)
        self._producer.commit_transaction(SECONDS)
        self._open_records = self._open_bytes = 0

    def _produce(self, rows: pa.RecordBatch) -> None:
        timestamps, offsets = rows["timestamp"].to_numpy(), rows["offset"].to_numpy()
        found = correct(timestamps, offsets, self._plan.clock, self._plan.rules)
        columns = [rows[name].to_pylist() for name in ("key", "value", "headers_binary")]
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
            carried = _as_clients_take(headers, f"{self._plan.source.of} offset {offset}")
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


def _as_clients_take(headers: list[dict[str, Any]] | None, where: str) -> list[tuple[str, Any]] | None:
    if headers is None:
        return None
    try:
        return [(header["key"].decode(), header["value"]) for header in headers]
    except UnicodeDecodeError as error:
        raise CannotWrite(f"{where}: the name of a header is not UTF-8, and clients write no other") from error
