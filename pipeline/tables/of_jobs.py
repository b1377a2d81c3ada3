"""Which of a job's tables are kept, by which names, and how they are cut into days."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.profile.cells import IS_CELL
from sluicegate.pipeline.jobs.profile.reading import UNREADABLE
from sluicegate.pipeline.tables.tables import Tables

_DAY_MS = 86_400_000
_OWN = ("gone_from", "gone_to", *UNREADABLE, "likely_unit")


def day_of(milliseconds: Column) -> Column:
    """The day (UTC) of a moment, whatever the session's time zone is."""
    return f.date_from_unix_date(f.floor(milliseconds / _DAY_MS).cast("int"))


def keep_profile(tables: Tables, hours: DataFrame, topics: Sequence[str]) -> None:
    """As `profile_hours`: without what a profile alone holds."""
    rows = hours.where(IS_CELL).drop(*_OWN).withColumn("day", day_of(f.col("hour")))
    tables.replace("profile_hours", rows, "topic", topics)


def keep_validation(tables: Tables, found: Mapping[str, DataFrame], topics: Sequence[str], read_at_ms: int) -> None:
    """As `validate_batches` and so on. What is gone has no time but that of reading."""
    days = {"samples": f.col("appended_ms"), "gone": f.lit(read_at_ms)}
    for name, rows in found.items():
        tables.replace(
            f"validate_{name}", rows.withColumn("day", day_of(days.get(name, f.col("hour")))), "topic", topics
        )


def keep_windows(tables: Tables, windows: DataFrame, stream: str, number: int) -> None:
    """What a batch of `violations` adds to its windows, as `violations_windows`. `stream` is its query's id."""
    name = batch_name(stream, number)
    rows = windows.withColumn("day", f.to_date("window_start")).withColumn("batch", f.lit(name))
    tables.replace("violations_windows", rows, "batch", [name])


def batch_name(stream: str, number: int) -> str:
    """Of a stream's batch: no longer than the 16 characters of a text that Iceberg keeps of each file, by which it
    knows what a file holds.
    """
    return f"{stream.replace('-', '')[:6]}-{number:08}"
