"""`sluicegate-spark violations`: the stream, and what its tables add up to."""

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from sluicegate.pipeline.results import Results
from sluicegate.pipeline.tables.of_jobs import keep_windows
from sluicegate.pipeline.tables.tables import Tables
from sluicegate.pipeline.violations.batches import Totals, windows_of, write_batch

CHECKPOINT = "checkpoint"


def run(
    events: DataFrame,
    results: Results,
    window: str,
    late_after_seconds: int,
    *,
    follow: bool,
    every_seconds: int,
    after_batch: Callable[[Totals], None],
    tables: Tables | None = None,
) -> None:
    """Take what is there, or with `follow` go on until stopped, a batch every so many seconds; a run that was killed is
    gone on with. `after_batch` gets what all batches add up to; they are read once, and then each when it is
    written. `tables`: where windows are kept as well.
    """
    so_far: list[Totals] = []

    def take(batch: DataFrame, number: int) -> None:
        if not so_far:
            so_far.append(Totals.of_batches_before(results, number))
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
    try:
        if follow:
            query.awaitTermination()
        else:
            query.processAllAvailable()
    finally:
        query.stop()


def stream_in(results: Results) -> str:
    """The id of the query, which it keeps from run to run."""
    return str(json.loads(results.read_text(f"{CHECKPOINT}/metadata"))["id"])


def summary_of(totals: Totals) -> dict[str, Any]:
    """What all batches so far hold."""
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
