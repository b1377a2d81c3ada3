"""Two topics' records made comparable: without what a repair has added, with the timestamp that they had before it."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.repair.correction import NAMES, RepairHeader
from sluicegate.pipeline.topics import Topics

_COLUMNS = "key,value,partition,offset,timestamp,headers_binary"
_ADDED = (RepairHeader.ORIGIN, RepairHeader.TIMESTAMP, RepairHeader.KIND)


def comparable(
    spark: SparkSession, topics: Topics, repaired_from: str | None = None, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Columns partition, offset, key, value, headers (its own, names as bytes), original (timestamp, ms), repair (kind,
    or null), origin_partition and origin_offset, timestamp, and ordinal, the place in its partition.

    What a repair of the topic `repaired_from` has added is the last three headers; others of those names are a record's
    own. `options` are the raw source's.
    """
    rows = topics.read(spark, "sluicegate", columns=_COLUMNS, **(options or {}))
    headers = f.coalesce(f.col("headers_binary"), f.array().cast(rows.schema["headers_binary"].dataType))
    # One task reads one partition, in its order, so a task's ids count up from its place in the upper bits.
    place = f.monotonically_increasing_id().bitwiseAND(f.lit((1 << 33) - 1))
    held = rows.select("partition", "offset", "key", "value", "timestamp", headers.alias("all"), place.alias("ordinal"))
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
        "ordinal",
    )


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
