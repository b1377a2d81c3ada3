"""Runs `sluicegate-spark violations`: runs the stream and sums its tables."""

import json
import threading
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from sluicegate.pipeline.jobs.violations.batches import ViolationTotals, windows_of, write_batch
from sluicegate.pipeline.runs.interruption import Interrupted, stop_request
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.runs.tables import Tables, batch_name

CHECKPOINT = "checkpoint"
_LOOK_SECONDS = 1  # the interval for checking signals, which do not end Spark's own wait


def run(
    events: DataFrame,
    results: Results,
    window: str,
    late_after_seconds: int,
    *,
    follow: bool,
    every_seconds: int,
    after_batch: Callable[[ViolationTotals], None],
    tables: Tables | None = None,
) -> None:
    """Process the existing events or, with `follow`, continue until a signal. Resumes a killed run.

    With `follow`, a batch begins every `every_seconds`. `after_batch` receives the sums over all batches, which are
    read once and then updated. If `tables` is not None, windows are also kept there. After a signal, raises Interrupted
    when the current batch is complete.
    """
    so_far: list[ViolationTotals] = []
    taking, is_over = threading.Lock(), threading.Event()

    def take(batch: DataFrame, number: int) -> None:
        with taking:
            if is_over.is_set():
                raise _Over  # so that Spark does not commit the batch
            if not so_far:
                so_far.append(ViolationTotals.of_batches_before(results, number))
            (totals,) = so_far
            write_batch(batch, number, results, window, late_after_seconds, totals.latest)
            if tables is not None:
                keep_windows(tables, windows_of(batch.sparkSession, results, number), stream_in(results), number)
            totals.add_batch(batch.sparkSession, results, number)
            if follow:
                after_batch(totals)

    query = (
        events.writeStream.queryName("sluicegate violations")
        .trigger(processingTime=f"{every_seconds if follow else 0} seconds")
        .foreachBatch(take)
        .option("checkpointLocation", results.path(CHECKPOINT))
        .start()
    )
    stopped_by = None
    try:
        if follow:
            stopped_by = _until_stopped(query)
            with taking:  # the current batch can complete
                is_over.set()
        else:
            query.processAllAvailable()
    finally:
        query.stop()
    if stopped_by is not None:
        raise Interrupted(stopped_by)


class _Over(Exception):
    """Raised if a batch begins after the run was stopped."""


def _until_stopped(query: StreamingQuery) -> int | None:
    """Wait for a signal and return its number; None if the query ended. Raises the query's error."""
    with stop_request() as request:
        while request.number is None and not query.awaitTermination(_LOOK_SECONDS):
            pass
        return request.number


def stream_in(results: Results) -> str:
    """Return the query's id, which is the same in every run."""
    return str(json.loads(results.read_text(f"{CHECKPOINT}/metadata"))["id"])


def summary_of(totals: ViolationTotals) -> dict[str, Any]:
    """Return the summary of all batches."""
    found = totals.offenders()
    for row in found:
        row["first_window"], row["latest"] = row["first_window"].isoformat(), row["latest"].isoformat()
    return {
        "job": "violations",
        "events": totals.events,
        "bad_lines": totals.bad_lines,
        "late_events": sum(row["late_events"] for row in found),
        "windows": totals.windows,
        "offenders": found,
    }


def keep_windows(tables: Tables, windows: DataFrame, stream: str, number: int) -> None:
    """Keep a batch's windows as `violations_windows`. `stream` is the query's id."""
    name = batch_name(stream, number)
    rows = windows.withColumn("day", f.to_date("window_start")).withColumn("batch", f.lit(name))
    tables.replace("violations_windows", rows, "batch", [name])
