"""A whole replay, proposed or written: its tables, its page and its summary written, and handed on."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.jobs.replay import job, report
from sluicegate.pipeline.jobs.replay.writing import Written
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.topics import Topics


@dataclass(frozen=True, slots=True)
class Replay:
    """`summary`: what summary.json holds. `replays`: a row for each record that goes back, before and after; `left`:
    those that do not, and why. `warnings`: a sentence for each thing to know.
    """

    summary: dict[str, Any]
    replays: DataFrame
    left: DataFrame
    warnings: tuple[str, ...]


def proposed(spark: SparkSession, topics: Topics, results: Results, asked: job.Asked) -> Replay:
    """What would go back; no topic is written. Raises CannotWrite, NoFindings, and what deciding raises."""
    work = job.looked_at(spark, topics, results, asked)
    results.forget_summary()
    return _told(work, job.listed(spark, work), None)


def written(spark: SparkSession, topics: Topics, results: Results, asked: job.Asked) -> Replay:
    """What goes back, written; goes on where a run before was killed. Raises CannotWrite, NoFindings, and what deciding
    raises.
    """
    work = job.taken_up(spark, topics, results, asked)
    results.forget_summary()
    listing = job.listed(spark, work)
    return _told(work, listing, job.apply(spark, work, listing))


def _told(work: job.Work, listing: job.Listing, done: list[Written] | None) -> Replay:
    results, summary = work.run.results, job.summary_of(work, listing, done)
    report.write_report(results, summary, work.validation.now_ms)
    results.write_summary(summary)
    return Replay(summary, results.read_table(job.BACK), results.read_table(job.LEFT), work.warnings)
