"""`sluicegate-spark violations`: the stream, and what its tables add up to."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from pipeline.results import Results
from pipeline.violations.batches import BAD_LINES, EVENTS, offenders, windows_of, write_batch

CHECKPOINT = "checkpoint"


def run(
    events: DataFrame,
    results: Results,
    window: str,
    late_after_seconds: int,
    *,
    follow: bool,
    after_batch: Callable[[], None],
) -> None:
    """Take what is there, or with `follow` go on until stopped; a run that was killed is gone on with."""

    def take(batch: DataFrame, number: int) -> None:
        write_batch(batch, number, results, window, late_after_seconds)
        if follow:
            after_batch()

    query = (
        events.writeStream.queryName("sluicegate violations")
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


def summary_of(results: Results) -> dict[str, Any]:
    """What all batches so far hold."""
    if not results.has(EVENTS):
        return {"job": "violations", "events": 0, "bad_lines": 0, "late_events": 0, "windows": 0, "offenders": []}
    found = offenders(results)
    for row in found:
        row["first_window"], row["latest"] = row["first_window"].isoformat(), row["latest"].isoformat()
    return {
        "job": "violations",
        "events": results.read_table(EVENTS).count(),
        "bad_lines": results.read_table(BAD_LINES).count(),
        "late_events": sum(row["late_events"] for row in found),
        "windows": windows_of(results).count(),
        "offenders": found,
    }
