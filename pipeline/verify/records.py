"""Two topics' records made comparable: without what a repair has added, with the timestamp that they had before it."""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.repair.correction import RepairHeader
from pipeline.topics import Topics

_COLUMNS = "key,value,partition,offset,timestamp,headers"
_OURS = [header.value for header in RepairHeader]


def comparable(spark: SparkSession, topics: Topics) -> DataFrame:
    """Columns partition, offset, key, value, headers (its own), original (timestamp, ms), repair (kind, or null),
    timestamp, and ordinal, the place in its partition.
    """
    rows = topics.read(spark, "sluicegate", columns=_COLUMNS)
    told = {header: _header(header.value) for header in RepairHeader}
    headers = f.coalesce(f.col("headers"), f.array().cast(rows.schema["headers"].dataType))
    # One task reads one partition, in its order, so a task's ids count up from its place in the upper bits.
    place = f.monotonically_increasing_id().bitwiseAND(f.lit((1 << 33) - 1))
    return rows.select(
        "partition",
        "offset",
        "key",
        "value",
        f.filter(headers, lambda header: ~header["key"].isin(_OURS)).alias("headers"),
        f.coalesce(told[RepairHeader.TIMESTAMP].cast("bigint"), f.col("timestamp")).alias("original"),
        told[RepairHeader.KIND].alias("repair"),
        "timestamp",
        place.alias("ordinal"),
    )


def content_hash(*more: Column) -> Column:
    """Of what must be equal, 64 bits."""
    return f.xxhash64("key", f.col("key").isNull(), "value", f.col("value").isNull(), "headers", "original", *more)


def _header(name: str) -> Column:
    found = f.filter(f.col("headers"), lambda header: header["key"] == name)
    return f.get(found, f.lit(0))["value"].cast("string")
