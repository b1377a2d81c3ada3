"""One micro-batch into the tables, so that doing it again changes nothing.

Each batch writes its rows into a folder of its own, in place of what a run that was killed may have left there. Windows
are added up over all batches when they are read, so an event counts in its window however late it comes.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.results import Results

EVENTS, WINDOWS, BAD_LINES = "events", "windows", "bad_lines"
_OF_WINDOW = ("window_start", "client_id", "topic", "reason")


def write_batch(
    events: DataFrame, number: int, results: Results, window: str, late_after_seconds: int, before: datetime | None
) -> None:
    """`window`: its length, as Spark's intervals. An event is late that is so far behind `before`, the latest of the
    batches before it.
    """
    kept = events.persist()
    try:
        kept.where(f.col("line").isNotNull()).select("line").coalesce(1).write.mode("overwrite").parquet(
            _folder(results, BAD_LINES, number)
        )
        sound = kept.where(f.col("line").isNull()).drop("line")
        allowed = f.expr(f"INTERVAL {late_after_seconds} SECONDS")
        late = f.lit(False) if before is None else f.col("at") < f.lit(before) - allowed
        told = sound.withColumn("late", late).withColumn("window_start", f.window("at", window)["start"])
        told.write.mode("overwrite").parquet(_folder(results, EVENTS, number))
        windows = told.groupBy(*_OF_WINDOW).agg(
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
    """What one batch adds to its windows."""
    return spark.read.parquet(_folder(results, WINDOWS, number))


@dataclass
class Offender:
    """Of one client, topic and reason, over all batches."""

    events: int = 0
    records: int = 0
    bad_records: int = 0
    late_events: int = 0
    first_window: datetime = datetime.max
    latest: datetime = datetime.min


class Totals:
    """What batches add up to, so that the next need not read them again."""

    def __init__(self) -> None:
        self._offenders: dict[tuple[str | None, ...], Offender] = {}
        self._windows: set[tuple[Any, ...]] = set()
        self.bad_lines = 0
        self.latest: datetime | None = None

    @classmethod
    def of_batches_before(cls, results: Results, number: int | None) -> "Totals":
        """Read back; None for all."""
        found = cls()
        if results.has(WINDOWS):
            found._add(_before(results.read_table(WINDOWS), number), _before(results.read_table(BAD_LINES), number))
        return found

    def add_batch(self, spark: SparkSession, results: Results, number: int) -> None:
        """One that was just written."""
        self._add(*(spark.read.parquet(_folder(results, table, number)) for table in (WINDOWS, BAD_LINES)))

    @property
    def events(self) -> int:
        """How many there are."""
        return sum(each.events for each in self._offenders.values())

    @property
    def windows(self) -> int:
        """How many there are, of a client, topic and reason each."""
        return len(self._windows)

    def offenders(self) -> list[dict[str, Any]]:
        """By client, topic and reason, those with most events first."""
        rows = [dict(zip(_OF_WINDOW[1:], who, strict=True)) | asdict(each) for who, each in self._offenders.items()]
        return sorted(rows, key=lambda row: (-row["events"], *(row[name] or "" for name in _OF_WINDOW[1:])))

    def _add(self, windows: DataFrame, bad_lines: DataFrame) -> None:
        self.bad_lines += bad_lines.count()
        for row in windows.collect():
            window, *who = (row[name] for name in _OF_WINDOW)
            self._windows.add((window, *who))
            each = self._offenders.setdefault(tuple(who), Offender())
            for name in ("events", "records", "bad_records", "late_events"):
                setattr(each, name, getattr(each, name) + (row[name] or 0))
            each.first_window, each.latest = min(each.first_window, window), max(each.latest, row["latest"])
            self.latest = row["latest"] if self.latest is None else max(self.latest, row["latest"])


def _before(table: DataFrame, number: int | None) -> DataFrame:
    return table if number is None else table.where(f.col("batch") < number)


def _folder(results: Results, table: str, number: int) -> str:
    return results.path(f"{table}/batch={number}")
