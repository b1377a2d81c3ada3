"""Reads the chunks of a partition in separate tasks and combines their results in the partition's order.

Partitions are cut at the boundaries of fixed blocks of offsets. A batch may cross a cut, which is only known after
reading it. It belongs to the chunk that contains its last offset. Compaction never changes a batch's last offset, and
this is the only offset that a compressed message of magic 0 or 1 contains. A fetch from a chunk's start returns the
first batch that ends there or later. Each batch therefore belongs to one chunk and is decompressed once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.kafka.cluster import KafkaCluster, OffsetRange
from sluicegate.pipeline.kafka.cluster_pool import pooled_cluster
from sluicegate.pipeline.kafka.fetching import DataLoss, StoredBatch, stored_batches
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.pipeline.source.tasks import begin_task, map_in_tasks

BLOCK_OFFSETS = 65_536
_BLOCKS_AT_LEAST = 4  # reading a smaller chunk takes less time than starting a task

MissingRanges = tuple[tuple[int, int], ...]
"""Ranges of offsets, each [first, end), that retention deleted before they were read."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The batches that end in [start, end). `whole` is the range that is read from the partition.

    A last batch that extends beyond `whole` belongs to the last chunk; its records after the end are ignored.
    """

    whole: OffsetRange
    start: int
    end: int

    @property
    def size(self) -> int:
        """Return the number of offsets."""
        return self.end - self.start

    @property
    def range(self) -> OffsetRange:
        """Return the chunk as a range, for code that reads records."""
        return OffsetRange(self.whole.of, self.start, self.end)

    def place(self, batch: StoredBatch) -> int:
        """Return the offset that determines which chunk contains the batch."""
        return min(batch.last_offset, self.whole.end - 1)


def cut_ranges(ranges: Sequence[OffsetRange], tasks: int) -> list[list[Chunk]]:
    """Cut each range that exceeds its share of `tasks` tasks and is large enough for several tasks.

    Returns the chunks of each range in order.
    """
    share = max(sum(each.size for each in ranges) // tasks, _BLOCKS_AT_LEAST * BLOCK_OFFSETS)
    return [_chunks(each, max(1, round(each.size / share))) for each in ranges]


def _chunks(whole: OffsetRange, count: int) -> list[Chunk]:
    between = (whole.start + whole.size * i // count for i in range(1, count))
    cuts = sorted({block * BLOCK_OFFSETS for block in (offset // BLOCK_OFFSETS for offset in between)})
    ends = [*(offset for offset in cuts if whole.start < offset < whole.end), whole.end]
    return [Chunk(whole, start, end) for start, end in pairwise([whole.start, *ends])]


def read_chunk(options: SourceOptions, chunk: Chunk, take: Callable[[StoredBatch], None]) -> MissingRanges:
    """Call `take` for each batch in a chunk, in order. Return the ranges that retention deleted meanwhile.

    Raises TopicTrouble and BrokerUnreachable.
    """
    missing: list[tuple[int, int]] = []
    start = chunk.start
    with pooled_cluster(options.bootstrap, options.settings) as cluster:
        while True:
            try:
                _read(cluster, options, chunk, start, take)
                return tuple(missing)
            except DataLoss as loss:
                missing.append((loss.first, loss.found))
                start = loss.found


def _read(
    cluster: KafkaCluster, options: SourceOptions, chunk: Chunk, start: int, take: Callable[[StoredBatch], None]
) -> None:
    for batch in stored_batches(cluster, OffsetRange(chunk.whole.of, start, chunk.end), options.committed):
        if chunk.place(batch) >= chunk.end:
            return
        take(batch)


def join_ranges(missing: Iterable[tuple[int, int]]) -> MissingRanges:
    """Join adjacent ranges of a partition's chunks, in order."""
    found: list[tuple[int, int]] = []
    for first, end in missing:
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], end)
        else:
            found.append((first, end))
    return tuple(found)


Read = Callable[[Chunk], pa.Table]
Finish = Callable[[OffsetRange, pa.Table], Iterable[pa.RecordBatch]]
_TYPES = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint"}
_ORDER = pa.schema([("whole", pa.int32()), ("start", pa.int64()), ("place", pa.int64())])


def map_partitions(
    spark: SparkSession, partitions: Sequence[Sequence[Chunk]], read: Read, schema: pa.Schema, finish: Finish, ddl: str
) -> DataFrame:
    """Return the rows of `finish` for all partitions.

    `finish` receives a partition's range and a table with the rows that `read` returned for its chunks, in order. It is
    not called for a partition in several chunks without any rows. The task that reads a partition with one chunk also
    finishes it; the results of several chunks go to one task.
    """
    alone = [its[0] for its in partitions if len(its) == 1]
    cut = [its for its in partitions if len(its) > 1]
    at_once = map_in_tasks(spark, alone, lambda chunk: chunk.size, lambda chunk: finish(chunk.whole, read(chunk)), ddl)
    if not cut:
        return at_once
    chunks = [(number, chunk) for number, its in enumerate(cut) for chunk in its]
    fields = [*_ORDER, *schema]
    parts = map_in_tasks(
        spark,
        chunks,
        lambda each: each[1].size,
        lambda each: _in_order(*each, read(each[1])),
        ", ".join(f"{field.name} {_TYPES[field.type]}" for field in fields),
    )
    wholes = [its[0].whole for its in cut]
    in_order = parts.repartition("whole").sortWithinPartitions(*_ORDER.names)
    together = in_order.mapInArrow(lambda batches: _finished(batches, wholes, finish), ddl)
    return at_once.union(together) if alone else together


def _in_order(number: int, chunk: Chunk, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Add columns with the partition and the position of each row."""
    place = 0
    for batch in rows.to_batches():
        count = len(batch)
        order = [
            pa.array(np.full(count, number, np.int32)),
            pa.array(np.full(count, chunk.start, np.int64)),
            pa.array(np.arange(place, place + count)),
        ]
        yield pa.RecordBatch.from_arrays([*order, *batch.columns], [*_ORDER.names, *batch.schema.names])
        place += count


def _finished(
    batches: Iterable[pa.RecordBatch], wholes: Sequence[OffsetRange], finish: Finish
) -> Iterator[pa.RecordBatch]:
    begin_task()
    number, parts = -1, list[pa.RecordBatch]()
    for batch in batches:
        for found, rows in _by_partition(batch):
            if parts and found != number:
                yield from finish(wholes[number], pa.Table.from_batches(parts))
                parts = []
            number = found
            parts.append(rows)
    if parts:
        yield from finish(wholes[number], pa.Table.from_batches(parts))


def _by_partition(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Split a sorted batch at partition boundaries, and drop the columns that sorted it."""
    numbers = batch["whole"].to_numpy()
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    rows = batch.select(batch.schema.names[len(_ORDER) :])
    for first, end in pairwise(cuts):
        if first < end:
            yield int(numbers[first]), rows.slice(first, end - first)
