"""`sluicegate-spark profile`: what topics hold, and what is wrong with their timestamps.

A partition is read by one task and added up there, so what passes through Spark is some rows an hour.
"""

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from pipeline.kafka.cluster import OffsetRange
from pipeline.profile.bounds import LADDER_MS
from pipeline.profile.cells import DDL, SUMS, cells_of, tally_of
from pipeline.profile.damage import NO_DAMAGE, Damage
from pipeline.results import Results
from pipeline.source.options import source_options
from pipeline.source.tasks import over
from pipeline.topics import Topics

HOURS = "hours"
_OF_PRODUCER = ("producer_id", "codec", "timestamp_type")
_SOUND = (NO_DAMAGE, Damage.PAST.value)


def cells(spark: SparkSession, topics: Topics, now_ms: int, after_max_ms: int, before_max_ms: int | None) -> DataFrame:
    """The rows that `pipeline.profile.cells` makes of topics."""
    options = source_options(topics.options)

    def of_partition(wanted: OffsetRange) -> pa.Table:
        return cells_of(tally_of(options, wanted, now_ms), now_ms, after_max_ms, before_max_ms)

    return over(spark, topics.ranges(), of_partition, DDL)


def profile(
    spark: SparkSession, topics: Topics, results: Results, now_ms: int, after_max_ms: int, before_max_ms: int | None
) -> dict[str, Any]:
    """Write the table `hours` and return the summary, which is not written yet."""
    results.forget_summary()
    hours = results.write_table(HOURS, cells(spark, topics, now_ms, after_max_ms, before_max_ms))
    rows = (
        hours.groupBy("topic", *_OF_PRODUCER, "damage", "ahead_beyond_ms", "behind_beyond_ms")
        .agg(*(f.sum(n).alias(n) for n in SUMS), f.min("earliest").alias("earliest"), f.max("latest").alias("latest"))
        .collect()
    )
    return {
        "job": "profile",
        "read_at_ms": now_ms,
        "after_max_ms": after_max_ms,
        "before_max_ms": before_max_ms,
        "topics": {name: _topic([row for row in rows if row["topic"] == name]) for name in topics.names},
    }


def _topic(rows: list[Row]) -> dict[str, Any]:
    return {
        **{name: sum(row[name] for row in rows) for name in SUMS},
        "timestamp_min": min((row["earliest"] for row in rows), default=None),
        "timestamp_max": max((row["latest"] for row in rows), default=None),
        "damage": {d.value: sum(row["records"] for row in rows if row["damage"] == d.value) for d in Damage},
        "producers": _producers(rows),
        "bounds": _bounds(rows),
    }


def _producers(rows: list[Row]) -> list[dict[str, Any]]:
    """Those with most records first, each with its damage."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        who = {name: row[name] for name in _OF_PRODUCER}
        entry = found.setdefault(tuple(who.values()), who | {"records": 0, "bytes": 0, "damage": {}})
        entry["records"] += row["records"]
        entry["bytes"] += row["bytes"]
        if row["damage"] != NO_DAMAGE:
            entry["damage"][row["damage"]] = entry["damage"].get(row["damage"], 0) + row["records"]
    return sorted(found.values(), key=lambda entry: (-entry["records"], entry["producer_id"]))


def _bounds(rows: list[Row]) -> list[dict[str, Any]]:
    """How many records lie beyond each bound that one could set; `sound_beyond` leaves out those that are damaged."""
    found = []
    for side in ("ahead", "behind"):
        for bound in LADDER_MS:
            beyond = [row for row in rows if row[f"{side}_beyond_ms"] >= bound]
            sound = sum(row["records"] for row in beyond if row["damage"] in _SOUND)
            total = sum(row["records"] for row in beyond)
            found.append({"side": side, "bound_ms": bound, "beyond": total, "sound_beyond": sound})
    return found
