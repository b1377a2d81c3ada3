"""Reads the chunks of a partition in separate tasks and combines their results in the partition's order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.source.chunks import Chunk
from sluicegate.pipeline.source.task_start import begin_task
from sluicegate.pipeline.source.tasks import over

Read = Callable[[Chunk], pa.Table]
Finish = Callable[[OffsetRange, pa.Table], Iterable[pa.RecordBatch]]
_TYPES = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint"}
_ORDER = pa.schema([("whole", pa.int32()), ("start", pa.int64()), ("place", pa.int64())])


def over_partitions(
    spark: SparkSession, partitions: Sequence[Sequence[Chunk]], read: Read, schema: pa.Schema, finish: Finish, ddl: str
) -> DataFrame:
    """Return the rows of `finish`. It gets a partition's range and a table of what `read` found in its chunks, in
    order; it is not called for a partition that was cut and has no rows.

    A partition of one chunk is finished in the task that reads it; the results of others go to one task.
    """
    alone = [its[0] for its in partitions if len(its) == 1]
    cut = [its for its in partitions if len(its) > 1]
    at_once = over(spark, alone, lambda chunk: chunk.size, lambda chunk: finish(chunk.whole, read(chunk)), ddl)
    if not cut:
        return at_once
    chunks = [(number, chunk) for number, its in enumerate(cut) for chunk in its]
    fields = [*_ORDER, *schema]
    parts = over(
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
    """Split a sorted batch at partition boundaries and drop the order columns."""
    numbers = batch["whole"].to_numpy()
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    rows = batch.select(batch.schema.names[len(_ORDER) :])
    for first, end in pairwise(cuts):
        if first < end:
            yield int(numbers[first]), rows.slice(first, end - first)
