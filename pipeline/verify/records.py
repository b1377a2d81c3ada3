"""Two topics' records made comparable: without what a repair has added, with the timestamp that they had before it."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.repair.correction import NAMES, RepairHeader
from sluicegate.pipeline.source.columns import ddl_of
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.reading import read_rows
from sluicegate.pipeline.source.tasks import over
from sluicegate.pipeline.topics import Topics

_COLUMNS = "key,value,partition,offset,timestamp,headers_binary"
_ORDINAL = "ordinal"
_ADDED = (RepairHeader.ORIGIN, RepairHeader.TIMESTAMP, RepairHeader.KIND)


def comparable(
    spark: SparkSession, topics: Topics, ranges: Sequence[OffsetRange], repaired_from: str | None = None
) -> DataFrame:
    """Columns partition, offset, key, value, headers (its own, names as bytes), original (timestamp, ms), repair (kind,
    or null), origin_partition and origin_offset, timestamp, and ordinal, the place in its range, of which there is one
    a partition.

    What a repair of the topic `repaired_from` has added is the last three headers; others of those names are a record's
    own.
    """
    rows = _in_their_order(spark, topics, ranges)
    headers = f.coalesce(f.col("headers_binary"), f.array().cast(rows.schema["headers_binary"].dataType))
    held = rows.select("partition", "offset", "key", "value", "timestamp", headers.alias("all"), _ORDINAL)
    own = f.size("all") - len(_ADDED)
    told = {name: f.get("all", own + i)["value"].cast("string") for i, name in enumerate(_ADDED)}
    origin = f.split(told[RepairHeader.ORIGIN], "/")
    is_repaired = f.lit(False) if repaired_from is None else _is_repair(own, told, repaired_from)
    marked = held.withColumn("repaired", f.coalesce(is_repaired, f.lit(False)))
    without = f.slice("all", 1, f.greatest(own, f.lit(0)))
    return marked.select(
        "partition",
        "offset",
        "key",
        "value",
        f.when(f.col("repaired"), without).otherwise(f.col("all")).alias("headers"),
        f.when(f.col("repaired"), told[RepairHeader.TIMESTAMP].try_cast("bigint"))
        .otherwise(f.col("timestamp"))
        .alias("original"),
        f.when(f.col("repaired"), told[RepairHeader.KIND]).alias("repair"),
        f.when(f.col("repaired"), f.get(origin, f.lit(1)).try_cast("int")).alias("origin_partition"),
        f.when(f.col("repaired"), f.get(origin, f.lit(2)).try_cast("bigint")).alias("origin_offset"),
        "timestamp",
        _ORDINAL,
    )


def _in_their_order(spark: SparkSession, topics: Topics, ranges: Sequence[OffsetRange]) -> DataFrame:
    """Numbered where they are read. Small partitions share tasks: each task costs as much as reading thousands."""
    options = source_options({**topics.options, "columns": _COLUMNS})

    def of_range(wanted: OffsetRange) -> Iterable[pa.RecordBatch]:
        count = 0
        for batch in read_rows(options, wanted):
            yield batch.append_column(_ORDINAL, pa.array(np.arange(count, count + len(batch))))
            count += len(batch)

    ddl = f"{ddl_of(options.columns)}, {_ORDINAL} bigint"
    return over(spark, ranges, lambda wanted: wanted.size, of_range, ddl)


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
