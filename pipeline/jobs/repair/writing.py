"""Writes a partition's corrected records to the clean topic exactly once, as a task of a repair."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from sluicegate.pipeline.jobs.repair.correction import NAMES, RepairHeader, correct_timestamps
from sluicegate.pipeline.jobs.repair.listing import have_unwritable_headers
from sluicegate.pipeline.jobs.repair.plan import RepairPartition
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.fetching import DataLoss
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.reading import read_rows
from sluicegate.pipeline.writing.progress import WriteProgress
from sluicegate.pipeline.writing.record_writer import MOST_RECORDS, CannotWriteTopic, Writing
from sluicegate.pipeline.writing.transactions import Transactions, transactions

_COLUMNS = "key,value,offset,timestamp,headers_binary"


@dataclass(frozen=True, slots=True)
class RepairedPartition:
    """The counts of one task."""

    topic: str
    partition: int
    records: int
    corrected: int


def write_partition(plan: RepairPartition, plan_id: str, writing: Writing) -> RepairedPartition:
    """Write a partition. Raises CannotWriteTopic and the errors of reading."""
    of = plan.source.of
    try:
        with transactions(of, writing) as target:
            before = target.before() or WriteProgress(plan.source.start, 0, plan_id)
            if before.plan_id != plan_id:
                raise CannotWriteTopic(
                    f"{plan.to} was written by another plan since this run began, and two plans must not share a "
                    "topic: continue in that plan's --out, or use another --to"
                )
            start = max(plan.source.start, before.reached)
            writer = _Writer(plan, target, before)
            if start < plan.source.end:
                fails = str(not plan.rules.skip_unreadable).lower()
                options = {"subscribe": of.topic, "columns": _COLUMNS, "failOnUnreadable": fails}
                reading = source_options({**writing.topics.options, **options})
                writer.write(read_rows(reading, OffsetRange(of, start, plan.source.end)))
    except DataLoss as loss:
        raise CannotWriteTopic(
            f"{loss} since the plan was made (retention?); written records stay. Make a new plan, with another "
            "--out and --to"
        ) from loss
    return RepairedPartition(of.topic, of.partition, writer.records - writer.left_out, writer.corrected)


class _Writer:
    """Writes Arrow rows in transactions. `records` is the number of rows read; `left_out` of them were not written."""

    def __init__(self, plan: RepairPartition, target: Transactions, before: WriteProgress) -> None:
        """Start after `before`, which is the progress of earlier runs."""
        self._plan = plan
        self._before = before
        self._target = target
        self._to = TopicPartition(plan.to, plan.source.of.partition)
        self._origin = f"{plan.source.of.topic}/{plan.source.of.partition}/"
        self.records = 0
        self.corrected = self.left_out = 0

    def write(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Write all rows, then commit the end of the range."""
        self._target.begin()
        for batch in batches:
            for start in range(0, len(batch), MOST_RECORDS // 10):
                rows = batch.slice(start, MOST_RECORDS // 10)
                self.records += len(rows)
                self._produce(self._writable(rows))
                if self._target.add(len(rows), rows.nbytes):
                    self._target.commit(self._progress(rows["offset"][-1].as_py() + 1))
                    self._target.begin()
        written = self._before.records + self.records
        planned = self._plan.contents
        if written > planned.records or (written < planned.records and not planned.may_shrink):
            raise CannotWriteTopic(
                f"{self._plan.source.of} to {self._plan.to}: the plan counted {planned.records:,} records in "
                f"offsets {self._plan.source.start} to {self._plan.source.end - 1}, and {written:,} were read "
                "now; committed records stay, the rest is not written. If records have since been deleted, make a new "
                "plan with another --out and --to; otherwise start again"
            )
        self._target.commit(self._progress(self._plan.source.end))

    def _progress(self, reached: int) -> WriteProgress:
        return WriteProgress(reached, self._before.records + self.records, self._before.plan_id)

    def _writable(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if not self._plan.rules.skip_unwritable:
            return rows
        unwritable = have_unwritable_headers(rows["headers_binary"])
        self.left_out += int(unwritable.sum())
        return rows.filter(pa.array(~unwritable))

    def _produce(self, rows: pa.RecordBatch) -> None:
        timestamps, offsets = rows["timestamp"].to_numpy(), rows["offset"].to_numpy()
        found = correct_timestamps(timestamps, offsets, self._plan.clock, self._plan.times, self._plan.rules)
        columns = [rows[name].to_pylist() for name in ("key", "value", "headers_binary")]
        corrected = found.solved & (found.after != timestamps)
        numbers = (
            found.after.tolist(),
            offsets.tolist(),
            timestamps.tolist(),
            found.kinds.tolist(),
            corrected.tolist(),
        )
        for key, value, headers, after, offset, before, kind, is_corrected in zip(*columns, *numbers, strict=True):
            if after == 0:
                raise CannotWriteTopic(
                    f"{self._plan.source.of} offset {offset}: a timestamp of 0 cannot be written, and the "
                    "partition has no usable time; set one with --assume-ms"
                )
            carried = [(header["key"], header["value"]) for header in headers or ()]
            if is_corrected:
                carried += self._repair_headers(offset, before, kind)
            self._target.write(self._to, key, value, after, carried)
        self.corrected += int(corrected.sum())

    def _repair_headers(self, offset: int, before: int, kind: int) -> list[tuple[bytes, bytes]]:
        headers = {
            RepairHeader.ORIGIN: f"{self._origin}{offset}",
            RepairHeader.TIMESTAMP: str(before),
            RepairHeader.KIND: NAMES[kind],
        }
        return [(name.encode(), text.encode()) for name, text in headers.items()]
