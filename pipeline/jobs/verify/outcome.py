"""A whole comparison: its table, its page and its summary written, and handed on."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.jobs.repair.plan import Plan
from sluicegate.pipeline.jobs.verify import job, report
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.topics import Topics


@dataclass(frozen=True, slots=True)
class Verification:
    """`is_same`: whether both topics hold the same records, declared repairs aside. `summary`: what summary.json holds.
    `differences`: record by record, by partition and offset of either topic; None where records are the same.
    `warnings`: a sentence for each thing that was left out.
    """

    is_same: bool
    summary: dict[str, Any]
    differences: DataFrame | None
    warnings: tuple[str, ...] = ()


def verified(
    spark: SparkSession, source: Topics, target: str, results: Results, now_ms: int, plan: Plan | None
) -> Verification:
    """As `sluicegate.pipeline.jobs.verify.job.verify`, with everything written."""
    results.forget_summary()
    results.remove(job.DIFFERENCES)  # an earlier run's, which are not this one's
    summary = job.verify(spark, source, target, results, now_ms, plan)
    report.write_report(results, summary, now_ms)
    results.write_summary(summary)
    differences = results.read_table(job.DIFFERENCES) if results.has(job.DIFFERENCES) else None
    return Verification(summary["same"], summary, differences)
