"""Runs `sluicegate-spark profile`: counts the topics' records and classifies their timestamps.

Executors aggregate partitions, in chunks if they are large, so only a few rows per hour pass through Spark. For
partitions in several chunks, executors also send a row per minute and producer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.profile import reading, report
from sluicegate.pipeline.jobs.profile.cells import DDL, HOURS, IS_CELL, LADDER_MS, SUMS, cells_of
from sluicegate.pipeline.jobs.profile.invalid_timestamps import (
    POSSIBLE_CODES,
    VALID_TIMESTAMP,
    InvalidTimestampKind,
    UncertainTimestampKind,
)
from sluicegate.pipeline.jobs.profile.reading import UNREADABLE, Reading, count_timestamps, reader_again
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.notebook import NotebookResult
from sluicegate.pipeline.report.wording import Conclusion
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.runs.tables import Tables, day_of
from sluicegate.pipeline.source.chunks import Chunk, cut_ranges, map_partitions
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.tasks import tasks_at_most
from sluicegate.pipeline.source.topics import Topics
from sluicegate.validation.units import plausible_range

_MOST_PRODUCERS = 5_000
"""The limit for one topic; a summary with this number of producers has a size of one megabyte."""


def with_fewer_producers(cells: DataFrame, columns: Sequence[str]) -> tuple[DataFrame, dict[str, int]]:
    """Set `columns` to null for the producers beyond a topic's limit, and return their number by topic.

    The producers with the most invalid timestamps are kept, then those with the most records.
    """
    counted = cells.groupBy("topic").agg(f.count_distinct(*columns).alias("n"))
    counts = {row.topic: row.n for row in counted.collect()}
    left_out = {topic: n - _MOST_PRODUCERS for topic, n in counts.items() if n > _MOST_PRODUCERS}
    if not left_out:
        return cells, left_out
    damaged = f.sum(f.when(f.col("damage").isin(*_CERTAIN), f.col("records")).otherwise(0))
    worst = Window.partitionBy("topic").orderBy(f.desc("damaged"), f.desc("records"), *columns)
    ranked = cells.groupBy("topic", *columns).agg(damaged.alias("damaged"), f.sum("records").alias("records"))
    kept = ranked.withColumn("rank", f.row_number().over(worst)).where(f.col("rank") <= _MOST_PRODUCERS)
    marked = cells.join(kept.select("topic", *columns, f.lit(1).alias("kept")), ["topic", *columns], "left")
    cleared = {name: f.when(f.col("kept") == 1, f.col(name)) for name in columns}
    return marked.withColumns(cleared).drop("kept"), left_out


_DISTANCES = ("ahead_beyond_ms", "behind_beyond_ms", "ahead_at_most_ms", "behind_at_most_ms")
_OF_PRODUCER = ("producer_id", "codec", "timestamp_type")
_GONE = ("partition", "missing_from", "missing_to")
_UNREADABLE = ("partition", *UNREADABLE)
_VALID = (VALID_TIMESTAMP, InvalidTimestampKind.PAST.value, UncertainTimestampKind.PAST.value)
_CERTAIN = frozenset(kind.value for kind in InvalidTimestampKind)


def read_cells(
    spark: SparkSession,
    topics: Topics,
    now_ms: int,
    after_max_ms: int,
    before_max_ms: int | None,
    epoch_ms: int | None = None,
) -> DataFrame:
    """Return the rows of `sluicegate.pipeline.jobs.profile.cells` for the topics."""
    options = source_options(topics.options)

    def count_timestamps_of_chunk(chunk: Chunk) -> pa.Table:
        return count_timestamps(options, chunk, now_ms, epoch_ms)

    def assess_partition(whole: OffsetRange, found: pa.Table) -> list[pa.RecordBatch]:
        again = reader_again(options, whole, now_ms, epoch_ms)
        rows: list[pa.RecordBatch] = cells_of(
            whole, Reading.from_table(found), now_ms, after_max_ms, before_max_ms, again
        ).to_batches()
        return rows

    partitions = cut_ranges(topics.ranges(), tasks_at_most(spark))
    return map_partitions(spark, partitions, count_timestamps_of_chunk, reading.SCHEMA, assess_partition, DDL)


def profile(
    spark: SparkSession,
    topics: Topics,
    results: Results,
    now_ms: int,
    after_max_ms: int,
    before_max_ms: int | None,
    epoch_ms: int | None = None,
) -> dict[str, Any]:
    """Write the table `hours` and return the summary, which the caller writes.

    `epoch_ms` of None means ten years before now.
    """
    results.forget_summary()
    found = results.write_table(HOURS, read_cells(spark, topics, now_ms, after_max_ms, before_max_ms, epoch_ms))
    missing = [row.asDict() for row in found.where("missing_from IS NOT NULL").select("topic", *_GONE).collect()]
    broken = [row.asDict() for row in found.where("reason IS NOT NULL").select("topic", *_UNREADABLE).collect()]
    held, left_out = with_fewer_producers(found.where(IS_CELL), _OF_PRODUCER)
    rows = (
        held.withColumn("is_dated", f.col("hour") == f.col("hour_until"))
        .groupBy("topic", *_OF_PRODUCER, "damage", *_DISTANCES, "likely_unit", "is_dated")
        .agg(*(f.sum(n).alias(n) for n in SUMS), f.min("earliest").alias("earliest"), f.max("latest").alias("latest"))
        .collect()
    )
    of_topic: dict[str, list[dict[str, Any]]] = {name: [] for name in topics.names}
    for row in rows:
        of_topic[row.topic].append(row.asDict())  # looking up a Row's field searches all its names
    return {
        "job": "profile",
        "left_out": list(topics.left_out),
        "read_at_ms": now_ms,
        "after_max_ms": after_max_ms,
        "before_max_ms": before_max_ms,
        "epoch_ms": plausible_range(now_ms, epoch_ms)[0],
        "topics": {
            name: topics.owner(name)
            | _topic(of_topic[name])
            | {"producers_left_out": left_out.get(name, 0)}
            | {"missing": [{key: row[key] for key in _GONE} for row in missing if row["topic"] == name]}
            | {"unreadable": [{key: row[key] for key in _UNREADABLE} for row in broken if row["topic"] == name]}
            for name in topics.names
        },
    }


def _topic(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        **{name: sum(row[name] for row in rows) for name in SUMS},
        "timestamp_min": min((row["earliest"] for row in rows), default=None),
        "timestamp_max": max((row["latest"] for row in rows), default=None),
        "damage": {
            d.value: sum(row["records"] for row in rows if row["damage"] == d.value) for d in InvalidTimestampKind
        },
        "damage_at_most": {
            name: sum(row["records"] for row in rows if row["damage"] in codes)
            for name, codes in POSSIBLE_CODES.items()
        },
        "undated": sum(row["records"] for row in rows if not row["is_dated"]),
        "likely_units": _likely_units(rows),
        "producers": _producers(rows),
        "bounds": _bounds(rows),
    }


def _likely_units(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Count implausible and future times by the unit in which they were perhaps written."""
    found: dict[str, int] = {}
    for row in rows:
        name = row["likely_unit"]
        if name is not None:
            found[name] = found.get(name, 0) + row["records"]
    return dict(sorted(found.items()))


def _producers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the producers with their invalid timestamps, sorted by records, without the omitted producers."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        if row["producer_id"] is None:
            continue  # an omitted producer
        producer = {name: row[name] for name in _OF_PRODUCER}
        entry = found.setdefault(tuple(producer.values()), producer | {"records": 0, "bytes": 0, "damage": {}})
        entry["records"] += row["records"]
        entry["bytes"] += row["bytes"]
        if row["damage"] in _CERTAIN:
            entry["damage"][row["damage"]] = entry["damage"].get(row["damage"], 0) + row["records"]
    return sorted(found.values(), key=lambda entry: (-entry["records"], *(entry[name] for name in _OF_PRODUCER)))


def _bounds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the minimum (`beyond`) and the maximum (`at_most`) number of records that exceed each bound.

    `valid_beyond` counts the records with valid timestamps that exceed the bound, measured from the nearest append that
    their topic shows.
    """
    found = []
    for side in ("ahead", "behind"):
        nearest = "ahead_at_most_ms" if side == "ahead" else "behind_beyond_ms"
        valid = [row for row in rows if row["damage"] in _VALID]
        counts = {
            "beyond": _by_step(rows, f"{side}_beyond_ms"),
            "at_most": _by_step(rows, f"{side}_at_most_ms"),
            "valid_beyond": _by_step(valid, nearest),
        }
        for bound in LADDER_MS:
            sums = {name: sum(n for step, n in its.items() if step >= bound) for name, its in counts.items()}
            found.append({"side": side, "bound_ms": bound, **sums})
    return found


def _by_step(rows: list[dict[str, Any]], column: str) -> dict[int, int]:
    """Count records by the bound in a column."""
    counts: dict[int, int] = {}
    for row in rows:
        counts[row[column]] = counts.get(row[column], 0) + row["records"]
    return counts


@dataclass(frozen=True, slots=True, repr=False)
class Profile(NotebookResult):
    """The results of a profile.

    `summary` is the content of summary.json. `hours` is the table of that name, with rows by topic, partition and hour
    (ms). `warnings` contains a sentence for each omission.
    """

    summary: dict[str, Any]
    hours: DataFrame
    warnings: tuple[str, ...]

    def conclusion(self) -> Conclusion:
        """Return the conclusion (see `NotebookResult`)."""
        return report.conclusion(self.summary)

    def table(self) -> ConsoleTable:
        """Return the table (see `NotebookResult`)."""
        return report.console_table(self.summary)


def run_profile(
    spark: SparkSession,
    topics: Topics,
    results: Results,
    now_ms: int,
    after_max_ms: int,
    before_max_ms: int | None,
    epoch_ms: int | None,
    tables: Tables | None,
) -> Profile:
    """Profile the topics and write all results. If `tables` is given, also keep the table there."""
    summary = profile(spark, topics, results, now_ms, after_max_ms, before_max_ms, epoch_ms)
    report.write_report(results, summary)
    hours = results.read_table(HOURS)
    if tables is not None:
        keep_profile(tables, hours, topics.names)
    results.write_summary(summary)
    return Profile(
        summary, hours, (*report.deleted_range_sentences(summary), *report.unreadable_range_sentences(summary))
    )


_NOT_KEPT = (
    "missing_from",
    "missing_to",
    *UNREADABLE,
    "likely_unit",
    "hour_until",
    "ahead_at_most_ms",
    "behind_at_most_ms",
)


def keep_profile(tables: Tables, hours: DataFrame, topics: Sequence[str]) -> None:
    """Keep the table as `profile_hours`, without the columns that only concern one profile."""
    rows = hours.where(IS_CELL).drop(*_NOT_KEPT).withColumn("day", day_of(f.col("hour")))
    tables.replace("profile_hours", rows, "topic", topics)
