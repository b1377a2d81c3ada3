"""Makes the records of two topics comparable.

To do so, it removes a repair's headers and restores the timestamps from before the repair.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.repair.correction import NAMES, RepairHeader
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.source.arrow import ddl_of
from sluicegate.pipeline.source.chunks import Chunk, cut_ranges
from sluicegate.pipeline.source.options import SourceOptions, source_options
from sluicegate.pipeline.source.reading import count_rows, read_rows
from sluicegate.pipeline.source.tasks import map_in_tasks, tasks_at_most
from sluicegate.pipeline.source.topics import Topics

_COLUMNS = "key,value,partition,offset,timestamp,headers_binary"
_ORDINAL = "ordinal"
_ORIGIN = ("origin_partition", "origin_offset")
_KEPT = ("partition", "offset", "key", "value", "timestamp", "declared", *_ORIGIN, _ORDINAL)
_ADDED = (RepairHeader.ORIGIN, RepairHeader.TIMESTAMP, RepairHeader.KIND)


class TopicChangedMeanwhile(Exception):
    """Raised if a topic changed after its records were counted. The message names the place and gives a fix."""


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A chunk of a partition, the ordinal of its first record, and the number of its records if they were counted."""

    wanted: OffsetRange
    first: int
    records: int | None


def records_of(spark: SparkSession, topics: Topics, ranges: Sequence[OffsetRange], source: str) -> DataFrame:
    """Return the records, with columns for the comparison.

    The columns are partition, offset, key, value, timestamp, `all` (headers, with names as bytes), ordinal (position in
    the partition's range), `whole` (a hash of everything that a client wrote), and the contents of the last three
    headers: `declared` (whether they come from a repair of the topic `source`), `before` (ms), `kind`,
    `origin_partition` and `origin_offset`.
    """
    rows = _in_their_order(spark, topics, ranges)
    headers = f.coalesce(f.col("headers_binary"), f.array().cast(rows.schema["headers_binary"].dataType))
    held = rows.select("partition", "offset", "key", "value", "timestamp", headers.alias("all"), _ORDINAL)
    own = f.size("all") - len(_ADDED)
    values = {name: f.get("all", own + i)["value"].cast("string") for i, name in enumerate(_ADDED)}
    origin = f.split(values[RepairHeader.ORIGIN], "/")
    return held.select(
        "*",
        f.xxhash64("key", f.col("key").isNull(), "value", f.col("value").isNull(), "all", "timestamp").alias("whole"),
        f.coalesce(_is_repair(own, values, source), f.lit(False)).alias("declared"),
        values[RepairHeader.TIMESTAMP].try_cast("bigint").alias("before"),
        values[RepairHeader.KIND].alias("kind"),
        f.get(origin, f.lit(1)).try_cast("int").alias("origin_partition"),
        f.get(origin, f.lit(2)).try_cast("bigint").alias("origin_offset"),
    )


def unchanged_records(records: DataFrame) -> DataFrame:
    """Return comparable records with all their headers.

    The columns are partition, offset, key, value, headers, original (timestamp, ms), repair (kind, null here),
    timestamp, ordinal and declared.
    """
    return _comparable(records, f.col("all"), f.col("timestamp"), f.lit(None).cast("string"))


def records_before_repair(records: DataFrame) -> DataFrame:
    """Return records as `unchanged_records` does, but remove the repair's headers from `declared` records.

    Adds the columns kind, origin_partition and origin_offset of the repair. Other headers with these names are the
    record's own.
    """
    own = f.slice("all", 1, f.greatest(f.size("all") - len(_ADDED), f.lit(0)))
    declared = f.col("declared")
    return _comparable(
        records,
        f.when(declared, own).otherwise(f.col("all")),
        f.when(declared, f.col("before")).otherwise(f.col("timestamp")),
        f.when(declared, f.col("kind")),
    )


def are_writable() -> Column:
    """Return whether client libraries can write all header names of a record that `records_of` returned."""

    def is_writable(header: Column) -> Column:
        return f.is_valid_utf8(header["key"].cast("string")) & ~f.contains(header["key"], f.lit(b"\0"))

    return f.forall("all", is_writable)


def _comparable(records: DataFrame, headers: Column, original: Column, repair: Column) -> DataFrame:
    values = headers.alias("headers"), original.alias("original"), repair.alias("repair")
    return records.select(*_KEPT, *values)


def _in_their_order(spark: SparkSession, topics: Topics, ranges: Sequence[OffsetRange]) -> DataFrame:
    """Number the records where they are read.

    Small partitions share tasks, because a task costs as much as reading thousands of records.
    """
    options = source_options({**topics.options, "columns": _COLUMNS})

    def rows_of_chunk(each: _Numbered) -> Iterable[pa.RecordBatch]:
        count = 0
        for batch in read_rows(options, each.wanted):
            yield batch.append_column(_ORDINAL, pa.array(np.arange(count, count + len(batch)) + each.first))
            count += len(batch)
        if each.records is not None and each.records != count:
            raise TopicChangedMeanwhile(
                f"{each.wanted.of}: {each.records} records were counted from offset {each.wanted.start} to "
                f"{each.wanted.end - 1}, and {count} were read: the topic was compacted meanwhile. Start again"
            )

    chunks = _numbered(spark, options, cut_ranges(ranges, tasks_at_most(spark)))
    ddl = f"{ddl_of(options.columns)}, {_ORDINAL} bigint"
    return map_in_tasks(spark, chunks, lambda each: each.wanted.size, rows_of_chunk, ddl)


def _numbered(spark: SparkSession, options: SourceOptions, partitions: Sequence[Sequence[Chunk]]) -> list[_Numbered]:
    """Count the records before each chunk, because offsets have gaps. Partitions with one chunk are not counted."""
    counted = [chunk.range for its in partitions for chunk in its[:-1]]
    counts: dict[OffsetRange, int] = {}
    if counted:

        def count_records_of_chunk(each: tuple[int, OffsetRange]) -> list[pa.RecordBatch]:
            return [pa.RecordBatch.from_pydict({"number": [each[0]], "records": [count_rows(options, each[1])]})]

        numbers = list(enumerate(counted))
        rows = map_in_tasks(
            spark, numbers, lambda each: each[1].size, count_records_of_chunk, "number bigint, records bigint"
        ).collect()
        counts = {counted[row.number]: row.records for row in rows}
    found = []
    for its in partitions:
        first = 0
        for chunk in its:
            records = counts.get(chunk.range)
            found.append(_Numbered(chunk.range, first, records))
            first += records or 0
    return found


def content_hash(*more: Column) -> Column:
    """Return a 64-bit hash of the fields that must be equal in both topics."""
    return f.xxhash64("key", f.col("key").isNull(), "value", f.col("value").isNull(), "headers", "original", *more)


def _is_repair(own: Column, values: Mapping[RepairHeader, Column], topic: str) -> Column:
    named = [f.get("all", own + i)["key"].cast("string") == name.value for i, name in enumerate(_ADDED)]
    whole = f.split(values[RepairHeader.ORIGIN], "/")
    return (
        (own >= 0)
        & named[0]
        & named[1]
        & named[2]
        & (f.size(whole) == 3)
        & (f.get(whole, f.lit(0)) == topic)
        & f.get(whole, f.lit(1)).try_cast("int").isNotNull()
        & f.get(whole, f.lit(2)).try_cast("bigint").isNotNull()
        & values[RepairHeader.TIMESTAMP].try_cast("bigint").isNotNull()
        & values[RepairHeader.KIND].isin(*NAMES[1:])
    )


def without_copied_declarations(target: DataFrame, source: DataFrame) -> DataFrame:
    """Return the target's records, `declared` only if the source contains no identical record, including headers.

    The source may contain records with a repair's headers, because a clean topic was written back to it or took its
    name. Copies of these records look like repairs of this run, and only the source shows that they existed before.
    Both frames come from `records_of`. If the target contains more identical records than the source, those at the same
    positions are the source's own, or else the last ones, because records that are written back come last.
    """
    carried = source.where("declared")
    places = carried.select("partition", "ordinal", "whole", f.lit(1).alias("in_place"))
    alike = Window.partitionBy("whole").orderBy(f.desc_nulls_last("in_place"), f.desc("partition"), f.desc("offset"))
    looking_so = target.where("declared").select("partition", "offset", "ordinal", "whole")
    numbered = looking_so.join(places, ["partition", "ordinal", "whole"], "left").withColumn(
        "number", f.row_number().over(alike)
    )
    held = carried.groupBy("whole").agg(f.count("*").alias("held"))
    copies = numbered.join(held, "whole").where(f.col("number") <= f.col("held"))
    marked = target.join(copies.select("partition", "offset", f.lit(1).alias("copy")), ["partition", "offset"], "left")
    return marked.withColumn("declared", f.col("declared") & f.col("copy").isNull()).drop("copy")
