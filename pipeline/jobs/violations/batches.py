"""Writes one micro-batch into the tables. Repeating a batch changes nothing.

Each batch has its own folder, which replaces the results of a killed run. Windows are summed over all batches when they
are read, so a late event still counts in its window.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.runs.results import Results

EVENTS, WINDOWS, BAD_LINES = "events", "windows", "bad_lines"
_OF_WINDOW = ("window_start", "client_id", "topic", "reason")


def write_batch(
    events: DataFrame, number: int, results: Results, window: str, late_after_seconds: int, before: datetime | None
) -> None:
    """Write a batch.

    `window` is the length of windows as a Spark interval. An event is late if it is more than `late_after_seconds`
    older than `before`, the latest time in earlier batches; None means that no event is late.
    """
    kept = events.persist()
    try:
        kept.where(f.col("line").isNotNull()).select("line").coalesce(1).write.mode("overwrite").parquet(
            _folder(results, BAD_LINES, number)
        )
        valid = kept.where(f.col("line").isNull()).drop("line")
        allowed = f.expr(f"INTERVAL {late_after_seconds} SECONDS")
        late = f.lit(False) if before is None else f.col("at") < f.lit(before) - allowed
        dated = valid.withColumn("late", late).withColumn("window_start", f.window("at", window)["start"])
        dated.write.mode("overwrite").parquet(_folder(results, EVENTS, number))
        windows = dated.groupBy(*_OF_WINDOW).agg(
            f.count("*").alias("events"),
            f.sum("records").alias("records"),
            f.sum("bad_records").alias("bad_records"),
            f.count_if("late").alias("late_events"),
            f.max("at").alias("latest"),
        )
        windows.coalesce(1).write.mode("overwrite").parquet(_folder(results, WINDOWS, number))
    finally:
        kept.unpersist()


def windows_of(spark: SparkSession, results: Results, number: int) -> DataFrame:
    """Return the counts that one batch adds to its windows."""
    return spark.read.parquet(_folder(results, WINDOWS, number))


@dataclass
class Offender:
    """The sums for one client, topic and reason over all batches."""

    events: int = 0
    records: int = 0
    bad_records: int = 0
    late_events: int = 0
    first_window: datetime = datetime.max
    latest: datetime = datetime.min


class ViolationTotals:
    """The sums over all batches. They are kept so that the next batch does not read earlier batches again."""

    def __init__(self) -> None:
        self._offenders: dict[tuple[str | None, ...], Offender] = {}
        self._windows: set[tuple[Any, ...]] = set()
        self.bad_lines = 0
        self.latest: datetime | None = None

    @classmethod
    def of_batches_before(cls, results: Results, number: int | None) -> "ViolationTotals":
        """Return the sums over the batches before the given number; None means all batches."""
        found = cls()
        if results.has(WINDOWS):
            found._add(_before(results.read_table(WINDOWS), number), _before(results.read_table(BAD_LINES), number))
        return found

    def add_batch(self, spark: SparkSession, results: Results, number: int) -> None:
        """Add a batch that was just written."""
        self._add(*(spark.read.parquet(_folder(results, table, number)) for table in (WINDOWS, BAD_LINES)))

    @property
    def events(self) -> int:
        """Return the number of events."""
        return sum(each.events for each in self._offenders.values())

    @property
    def windows(self) -> int:
        """Return the number of windows, each for a client, topic and reason."""
        return len(self._windows)

    def offenders(self) -> list[dict[str, Any]]:
        """Return the sums by client, topic and reason, sorted by number of events, largest first."""
        rows = [dict(zip(_OF_WINDOW[1:], key, strict=True)) | asdict(each) for key, each in self._offenders.items()]
        return sorted(rows, key=lambda row: (-row["events"], *(row[name] or "" for name in _OF_WINDOW[1:])))

    def _add(self, windows: DataFrame, bad_lines: DataFrame) -> None:
        self.bad_lines += bad_lines.count()
        for row in windows.collect():
            window, *key = (row[name] for name in _OF_WINDOW)
            self._windows.add((window, *key))
            each = self._offenders.setdefault(tuple(key), Offender())
            for name in ("events", "records", "bad_records", "late_events"):
                setattr(each, name, getattr(each, name) + (row[name] or 0))
            each.first_window, each.latest = min(each.first_window, window), max(each.latest, row["latest"])
            self.latest = row["latest"] if self.latest is None else max(self.latest, row["latest"])


def _before(table: DataFrame, number: int | None) -> DataFrame:
    return table if number is None else table.where(f.col("batch") < number)


def _folder(results: Results, table: str, number: int) -> str:
    return results.path(f"{table}/batch={number}")
