"""Two topics' records made comparable: without what a repair has added, with the timestamp that they had before it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.repair.correction import NAMES, RepairHeader
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.source.chunks import Piece, cut
from sluicegate.pipeline.source.columns import ddl_of
from sluicegate.pipeline.source.options import SourceOptions, source_options
from sluicegate.pipeline.source.reading import count_rows, read_rows
from sluicegate.pipeline.source.tasks import over, tasks_at_most
from sluicegate.pipeline.topics import Topics

_COLUMNS = "key,value,partition,offset,timestamp,headers_binary"
_ORDINAL = "ordinal"
_ORIGIN = ("origin_partition", "origin_offset")
_KEPT = ("partition", "offset", "key", "value", "timestamp", "declared", *_ORIGIN, _ORDINAL)
_ADDED = (RepairHeader.ORIGIN, RepairHeader.TIMESTAMP, RepairHeader.KIND)


class ChangedMeanwhile(Exception):
    """A topic is no longer what it was when its records were counted; the text says where, and what to do."""


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A piece of a partition, the ordinal of its first record, and how many it has, where that was counted."""

    wanted: OffsetRange
    first: int
    records: int | None


def records_of(spark: SparkSession, topics: Topics, ranges: Sequence[OffsetRange], source: str) -> DataFrame:
    """Columns partition, offset, key, value, timestamp, `all` (headers, names as bytes), ordinal, the place in its
    range, of which there is one a partition, `whole`, a hash of all that a client wrote, and what the last three
    headers say: whether they are those of a repair of the topic `source` (`declared`), and its `before` (ms), `kind`,
    `origin_partition` and `origin_offset`.
    """
    rows = _in_their_order(spark, topics, ranges)
    headers = f.coalesce(f.col("headers_binary"), f.array().cast(rows.schema["headers_binary"].dataType))
    held = rows.select("partition", "offset", "key", "value", "timestamp", headers.alias("all"), _ORDINAL)
    own = f.size("all") - len(_ADDED)
    told = {name: f.get("all", own + i)["value"].cast("string") for i, name in enumerate(_ADDED)}
    origin = f.split(told[RepairHeader.ORIGIN], "/")
    return held.select(
        "*",
        f.xxhash64("key", f.col("key").isNull(), "value", f.col("value").isNull(), "all", "timestamp").alias("whole"),
        f.coalesce(_is_repair(own, told, source), f.lit(False)).alias("declared"),
        told[RepairHeader.TIMESTAMP].try_cast("bigint").alias("before"),
        told[RepairHeader.KIND].alias("kind"),
        f.get(origin, f.lit(1)).try_cast("int").alias("origin_partition"),
        f.get(origin, f.lit(2)).try_cast("bigint").alias("origin_offset"),
    )


def as_they_are(records: DataFrame) -> DataFrame:
    """Comparable, with all their headers: columns partition, offset, key, value, headers, original (timestamp, ms),
    repair (kind, here null), timestamp, ordinal and declared.
    """
    return _comparable(records, f.col("all"), f.col("timestamp"), f.lit(None).cast("string"))


def before_repair(records: DataFrame) -> DataFrame:
    """As `as_they_are`, but those `declared` without what a repair has added and with its kind; with origin_partition
    and origin_offset. Other headers of those names are a record's own.
    """
    own = f.slice("all", 1, f.greatest(f.size("all") - len(_ADDED), f.lit(0)))
    declared = f.col("declared")
    return _comparable(
        records,
        f.when(declared, own).otherwise(f.col("all")),
        f.when(declared, f.col("before")).otherwise(f.col("timestamp")),
        f.when(declared, f.col("kind")),
    )


def _comparable(records: DataFrame, headers: Column, original: Column, repair: Column) -> DataFrame:
    told = headers.alias("headers"), original.alias("original"), repair.alias("repair")
    return records.select(*_KEPT, *told)


def _in_their_order(spark: SparkSession, topics: Topics, ranges: Sequence[OffsetRange]) -> DataFrame:
    """Numbered where they are read. Small partitions share tasks: each task costs as much as reading thousands."""
    options = source_options({**topics.options, "columns": _COLUMNS})

    def of_piece(each: _Numbered) -> Iterable[pa.RecordBatch]:
        count = 0
        for batch in read_rows(options, each.wanted):
            yield batch.append_column(_ORDINAL, pa.array(np.arange(count, count + len(batch)) + each.first))
            count += len(batch)
        if each.records is not None and each.records != count:
            raise ChangedMeanwhile(
                f"{each.wanted.of}: {each.records} records had been counted from offset {each.wanted.start} to "
                f"{each.wanted.end - 1}, and {count} were read: the topic is compacted meanwhile. Start again"
            )

    pieces = _numbered(spark, options, cut(ranges, tasks_at_most(spark)))
    ddl = f"{ddl_of(options.columns)}, {_ORDINAL} bigint"
    return over(spark, pieces, lambda each: each.wanted.size, of_piece, ddl)


def _numbered(spark: SparkSession, options: SourceOptions, partitions: Sequence[Sequence[Piece]]) -> list[_Numbered]:
    """How many records lie before a piece only counting tells: offsets have gaps. What is not cut is not counted."""
    counted = [piece.range for its in partitions for piece in its[:-1]]
    counts: dict[OffsetRange, int] = {}
    if counted:

        def count(each: tuple[int, OffsetRange]) -> list[pa.RecordBatch]:
            return [pa.RecordBatch.from_pydict({"number": [each[0]], "records": [count_rows(options, each[1])]})]

        numbers = list(enumerate(counted))
        rows = over(spark, numbers, lambda each: each[1].size, count, "number bigint, records bigint").collect()
        counts = {counted[row.number]: row.records for row in rows}
    found = []
    for its in partitions:
        first = 0
        for piece in its:
            records = counts.get(piece.range)
            found.append(_Numbered(piece.range, first, records))
            first += records or 0
    return found


def content_hash(*more: Column) -> Column:
    """Of what must be equal, 64 bits."""
    return f.xxhash64("key", f.col("key").isNull(), "value", f.col("value").isNull(), "headers", "original", *more)


def _is_repair(own: Column, told: Mapping[RepairHeader, Column], topic: str) -> Column:
    named = [f.get("all", own + i)["key"].cast("string") == name.value for i, name in enumerate(_ADDED)]
    whole = f.split(told[RepairHeader.ORIGIN], "/")
    return (
        (own >= 0)
        & named[0]
        & named[1]
        & named[2]
        & (f.size(whole) == 3)
        & (f.get(whole, f.lit(0)) == topic)
        & f.get(whole, f.lit(1)).try_cast("int").isNotNull()
        & f.get(whole, f.lit(2)).try_cast("bigint").isNotNull()
        & told[RepairHeader.TIMESTAMP].try_cast("bigint").isNotNull()
        & told[RepairHeader.KIND].isin(*NAMES[1:])
    )


def without_carried(target: DataFrame, source: DataFrame) -> DataFrame:
    """The target's records, `declared` only where the source has none that is the same as it stands, headers included.

    Both are of `records_of` (records.py). Where the target has more of one kind than the source,
    the source's own are those in their places, or else the last ones: what is written back comes behind.
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
