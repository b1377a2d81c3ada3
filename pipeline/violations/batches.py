"""One micro-batch into the tables, so that doing it again changes nothing.

Each batch writes its rows into a folder of its own, in place of what a run that was killed may have left there. Windows
are added up over all batches when they are read, so an event counts in its window however late it comes.
"""

from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipeline.results import Results

EVENTS, WINDOWS, BAD_LINES = "events", "windows", "bad_lines"
_OF_WINDOW = ("window_start", "client_id", "topic", "reason")


def write_batch(events: DataFrame, number: int, results: Results, window: str, late_after_seconds: int) -> None:
    """`window`: its length, as Spark's intervals. An event is late that is so far behind the latest of the batches
    before it.
    """
    kept = events.persist()
    try:
        kept.where(f.col("line").isNotNull()).select("line").write.mode("overwrite").parquet(
            _folder(results, BAD_LINES, number)
        )
        sound = kept.where(f.col("line").isNull()).drop("line")
        before = latest_before(results, number)
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
        windows.write.mode("overwrite").parquet(_folder(results, WINDOWS, number))
    finally:
        kept.unpersist()


def latest_before(results: Results, number: int) -> datetime | None:
    """The latest event of the batches before, which is the same when a batch is done again."""
    if number == 0:
        return None
    found = results.read_table(WINDOWS).where(f.col("batch") < number).agg(f.max("latest")).first()
    latest: datetime | None = found[0] if found is not None else None
    return latest


def windows_of(results: Results) -> DataFrame:
    """Each window of a client, topic and reason, over all batches."""
    return (
        results.read_table(WINDOWS)
        .groupBy(*_OF_WINDOW)
        .agg(
            *(f.sum(name).alias(name) for name in ("events", "records", "bad_records", "late_events")),
            f.max("latest").alias("latest"),
        )
    )


def offenders(results: Results) -> list[dict[str, Any]]:
    """By client, topic and reason, those with most bad records first."""
    rows = (
        windows_of(results)
        .groupBy("client_id", "topic", "reason")
        .agg(
            *(f.sum(name).alias(name) for name in ("events", "records", "bad_records", "late_events")),
            f.min("window_start").alias("first_window"),
            f.max("latest").alias("latest"),
        )
        .orderBy(f.desc("events"), "client_id", "topic", "reason")
    )
    return [row.asDict() for row in rows.collect()]


def _folder(results: Results, table: str, number: int) -> str:
    return results.path(f"{table}/batch={number}")
