"""Lists, before anything is written, unreadable batches and every record that a repair changes or leaves invalid."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.repair.correction import NAMES, correct_timestamps
from sluicegate.pipeline.jobs.repair.plan import RepairPartition, RepairPlan
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.kafka.cluster_pool import pooled_cluster
from sluicegate.pipeline.kafka.fetching import DataLoss, stored_batches
from sluicegate.pipeline.source.chunks import cut_ranges
from sluicegate.pipeline.source.decoding import BatchDecoder, BrokenRecords
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.reading import read_rows
from sluicegate.pipeline.source.tasks import map_in_tasks, tasks_at_most
from sluicegate.pipeline.source.topics import Topics

_COLUMNS = "topic,partition,offset,timestamp,producer_id,headers_binary"
_PASSES_OVER = {"failOnDataLoss": "false", "failOnUnreadable": "false"}  # obstacles report both
DDL = (
    "topic string, partition int, offset bigint, producer_id bigint, damage string, before bigint, after bigint, "
    "solved boolean, may_be_valid boolean, unwritable boolean"
)


def list_invalid_timestamps(spark: SparkSession, topics: Topics, plan: RepairPlan) -> DataFrame:
    """Return a row for each record with an invalid timestamp in the plan's ranges.

    `after` equals `before` if the timestamp was not `solved`. There is also a row without a kind (`damage`) for each
    `unwritable` record that has a valid timestamp, but a header name that client libraries cannot write.
    """
    options = source_options({**topics.options, "columns": _COLUMNS, **_PASSES_OVER})

    def list_records_of_chunk(each: tuple[RepairPartition, OffsetRange]) -> Iterable[pa.RecordBatch]:
        its, wanted = each
        return (_rows_to_list(batch, its) for batch in read_rows(options, wanted))

    partitions = cut_ranges([each.source for each in plan.partitions], tasks_at_most(spark))
    chunks = [(each, chunk.range) for each, its in zip(plan.partitions, partitions, strict=True) for chunk in its]
    return map_in_tasks(spark, chunks, lambda each: each[1].size, list_records_of_chunk, DDL)


def _rows_to_list(batch: pa.RecordBatch, plan: RepairPartition) -> pa.RecordBatch:
    """Return the rows for one Arrow batch."""
    before, offsets = batch["timestamp"].to_numpy(), batch["offset"].to_numpy()
    found = correct_timestamps(before, offsets, plan.clock, plan.times, plan.rules)
    unwritable = have_unwritable_headers(batch["headers_binary"])
    places = np.flatnonzero(found.kinds.astype(np.bool_) | unwritable)
    kept = batch.take(pa.array(places))
    added = {
        "damage": pa.array([NAMES[kind] or None for kind in found.kinds[places]], pa.string()),
        "unwritable": pa.array(unwritable[places]),
        "before": kept["timestamp"],
        "after": pa.array(found.after[places]),
        "solved": pa.array(found.solved[places]),
        "may_be_valid": pa.array(found.may_be_valid[places]),
    }
    names = [column.split()[0] for column in DDL.split(", ")]
    return pa.RecordBatch.from_arrays([added[name] if name in added else kept[name] for name in names], names)


def timestamp_changes(listed: DataFrame) -> list[dict[str, Any]]:
    """Return the changes, grouped by topic, producer, kind and whether the times may be valid.

    Each change contains counts, times and an example.
    """
    grouped = (
        listed.where(f.col("damage").isNotNull())
        .groupBy("topic", "producer_id", "damage", "solved", "may_be_valid")
        .agg(
            f.count("*").alias("records"),
            f.min("after").alias("earliest_after"),
            f.max("after").alias("latest_after"),
            f.min_by("before", f.struct("partition", "offset")).alias("example_before"),
            f.min_by("after", f.struct("partition", "offset")).alias("example_after"),
            f.min_by(f.struct("partition", "offset"), f.struct("partition", "offset")).alias("example_at"),
        )
    )
    rows = grouped.orderBy("topic", "producer_id", "damage", "may_be_valid").collect()
    return [row.asDict(recursive=True) for row in rows]


def have_unwritable_headers(headers: pa.ListArray) -> NDArray[np.bool_]:
    """Return whether each record has a header name that is not UTF-8 or contains a zero byte. Names are bytes."""
    found = np.zeros(len(headers), np.bool_)
    names = headers.flatten().field("key")
    if not _are_plain(names):
        parents = pc.list_parent_indices(headers).to_numpy()
        found[[parents[i] for i in range(len(names)) if not _are_plain(names[i : i + 1])]] = True
    return found


def _are_plain(names: pa.Array) -> bool:
    try:
        names.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return not pc.any(pc.match_substring(names, "\0")).as_py()


UNREADABLE_DDL = "topic string, partition int, first_offset bigint, last_offset bigint, reason string, stored binary"


def unreadable_batches(spark: SparkSession, topics: Topics, plan: RepairPlan) -> DataFrame:
    """Return the stored bytes of each unreadable batch in the plan's ranges, except batches deleted since."""
    options = source_options(topics.options)

    def list_batches_of_range(wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
        decoder = BatchDecoder()
        with pooled_cluster(options.bootstrap, options.settings) as cluster:
            try:
                for batch in stored_batches(cluster, wanted, options.committed):
                    try:
                        decoder.decode(batch)
                    except BrokenRecords as error:
                        place = [wanted.of.topic, wanted.of.partition, batch.first_offset, batch.last_offset]
                        yield _row([*place, str(error), bytes(batch.data[batch.start : batch.end])])
            except DataLoss:
                return

    stretches = [
        OffsetRange(each.source.of, its.first_offset, its.last_offset + 1)
        for each in plan.partitions
        for its in each.contents.unreadable
    ]
    if not stretches:
        return spark.createDataFrame([], UNREADABLE_DDL)
    return map_in_tasks(spark, stretches, lambda stretch: stretch.size, list_batches_of_range, UNREADABLE_DDL)


def _row(values: list[object]) -> pa.RecordBatch:
    kinds = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.string(), pa.binary())
    names = [column.split()[0] for column in UNREADABLE_DDL.split(", ")]
    arrays = [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names)
