"""`sluicegate-spark profile`: what topics hold, and what is wrong with their timestamps."""

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.profile.bounds import LADDER_MS
from pipeline.profile.damage import DDL, NO_DAMAGE, Damage, assess
from pipeline.results import Results
from pipeline.topics import Topics

_SUMS = ("records", "null_keys", "bytes", "batches", "stored_bytes")


def assessed(
    spark: SparkSession, topics: Topics, now_ms: int, after_max_ms: int, before_max_ms: int | None, **options: str
) -> DataFrame:
    """The tally of topics with each row's damage: see `pipeline.profile.damage`."""
    tasks = max(len(topics.partitions()), spark.sparkContext.defaultParallelism)
    tally = topics.read(spark, "sluicegate-tally", now=str(now_ms), minPartitions=str(tasks), **options)

    def of_partition(rows: pa.Table) -> pa.Table:
        return assess(rows, now_ms, after_max_ms, before_max_ms)

    return tally.groupBy("topic", "partition").applyInArrow(of_partition, DDL)


def profile(
    spark: SparkSession, topics: Topics, results: Results, now_ms: int, after_max_ms: int, before_max_ms: int | None
) -> dict[str, Any]:
    """Write the tables `tally`, `hours`, `producers` and `bounds` and return the summary, which is not written yet."""
    results.forget_summary()
    tally = results.write_table("tally", assessed(spark, topics, now_ms, after_max_ms, before_max_ms)).cache()
    sums = [f.sum(name).alias(name) for name in _SUMS]
    hours = tally.groupBy("topic", "partition", "hour", "damage").agg(
        *sums, f.min("earliest").alias("earliest"), f.max("latest").alias("latest")
    )
    results.write_table("hours", hours)
    producers = tally.groupBy("topic", "producer_id", "codec", "timestamp_type", "damage").agg(*sums)
    results.write_table("producers", producers)
    results.write_table("bounds", _beyond(tally))
    summary: dict[str, Any] = {
        "job": "profile",
        "read_at_ms": now_ms,
        "after_max_ms": after_max_ms,
        "before_max_ms": before_max_ms,
        "topics": {name: _empty() for name in topics.names} | _of_topics(tally),
    }
    for row in producers.orderBy("topic", f.desc("records")).collect():
        _add_producer(summary["topics"][row.topic], row.asDict())
    tally.unpersist()
    return summary


def _beyond(tally: DataFrame) -> DataFrame:
    """How many records lie beyond each bound that one could set; `sound_beyond` leaves out those that are damaged."""
    sides = [(side, bound) for side in ("ahead", "behind") for bound in LADDER_MS]
    ladder = f.array(*(f.struct(f.lit(side).alias("side"), f.lit(bound).alias("bound_ms")) for side, bound in sides))
    beyond = f.when(f.col("at.side") == "ahead", f.col("ahead")).otherwise(f.col("behind")) > f.col("at.bound_ms")
    sound = f.col("damage").isin(NO_DAMAGE, Damage.PAST.value)
    return (
        tally.select("topic", "records", "ahead", "behind", "damage", f.explode(ladder).alias("at"))
        .groupBy("topic", "at.side", "at.bound_ms")
        .agg(
            f.sum(f.when(beyond, f.col("records")).otherwise(0)).alias("beyond"),
            f.sum(f.when(beyond & sound, f.col("records")).otherwise(0)).alias("sound_beyond"),
            f.sum(f.when(sound, f.col("records")).otherwise(0)).alias("sound"),
            f.sum("records").alias("records"),
        )
        .orderBy("topic", "side", "bound_ms")
    )


def _of_topics(tally: DataFrame) -> dict[str, dict[str, Any]]:
    damages = [
        f.sum(f.when(f.col("damage") == d.value, f.col("records")).otherwise(0)).alias(f"damage_{d.value}")
        for d in Damage
    ]
    rows = tally.groupBy("topic").agg(
        *(f.sum(name).alias(name) for name in _SUMS),
        f.min("earliest").alias("timestamp_min"),
        f.max("latest").alias("timestamp_max"),
        f.countDistinct("partition").alias("partitions"),
        *damages,
    )
    found = {}
    for row in rows.collect():
        values = row.asDict()
        counts = {d.value: values.pop(f"damage_{d.value}") for d in Damage}
        found[values.pop("topic")] = {**values, "damage": counts, "producers": []}
    return found


def _empty() -> dict[str, Any]:
    return {
        **dict.fromkeys(_SUMS, 0),
        "timestamp_min": None,
        "timestamp_max": None,
        "partitions": 0,
        "damage": dict.fromkeys((d.value for d in Damage), 0),
        "producers": [],
    }


def _add_producer(topic: dict[str, Any], row: dict[str, Any]) -> None:
    """Into the entry of the same producer and codec, whichever damage the row is about."""
    who = {name: row[name] for name in ("producer_id", "codec", "timestamp_type")}
    entry = next((e for e in topic["producers"] if all(e[name] == value for name, value in who.items())), None)
    if entry is None:
        entry = who | {"records": 0, "bytes": 0, "damage": {}}
        topic["producers"].append(entry)
    entry["records"] += row["records"]
    entry["bytes"] += row["bytes"]
    if row["damage"] != NO_DAMAGE:
        entry["damage"][row["damage"]] = entry["damage"].get(row["damage"], 0) + row["records"]
