"""A whole profile: its tables, its page and its summary written, and handed on."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.jobs.profile import job, report
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.tables.of_jobs import keep_profile
from sluicegate.pipeline.tables.tables import Tables
from sluicegate.pipeline.topics import Topics


@dataclass(frozen=True, slots=True)
class Profile:
    """`summary`: what summary.json holds. `hours`: the table of that name, rows by topic, partition and hour (ms).
    `warnings`: a sentence for each thing that was left out.
    """

    summary: dict[str, Any]
    hours: DataFrame
    warnings: tuple[str, ...]


def profiled(
    spark: SparkSession,
    topics: Topics,
    results: Results,
    now_ms: int,
    after_max_ms: int,
    before_max_ms: int | None,
    epoch_ms: int | None,
    tables: Tables | None,
) -> Profile:
    """As `sluicegate.pipeline.jobs.profile.job.profile`, with everything written, and `tables` kept."""
    summary = job.profile(spark, topics, results, now_ms, after_max_ms, before_max_ms, epoch_ms)
    report.write_report(results, summary)
    hours = results.read_table(job.HOURS)
    if tables is not None:
        keep_profile(tables, hours, topics.names)
    results.write_summary(summary)
    return Profile(summary, hours, (*report.went_meanwhile(summary), *report.unreadable(summary)))
