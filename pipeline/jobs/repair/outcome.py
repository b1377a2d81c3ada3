"""A whole repair, proposed or written: its tables, its page and its summary written, and handed on."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.jobs.repair import job, report, rights
from sluicegate.pipeline.jobs.repair.correction import BY_NAME_ONLY, NAMES, Rules
from sluicegate.pipeline.jobs.repair.plan import Plan
from sluicegate.pipeline.jobs.repair.writing import Written
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.topics import Topics


class NoSuchDamage(ValueError):
    """A damage that is none, or that one cannot ask for; the text says which there are."""


@dataclass(frozen=True, slots=True)
class Repair:
    """`summary`: what summary.json holds. `repairs`: a row for each damaged record, before and after, with `solved`
    where it changes; `undiagnosed`: those that stay as they are. `obstacles`: what would stop the writing, a sentence
    each. `warnings`: what to know of the clean topics' retention, and what was left out.
    """

    summary: dict[str, Any]
    repairs: DataFrame
    undiagnosed: DataFrame
    obstacles: tuple[str, ...]
    warnings: tuple[str, ...]


def check_damages(keep: Collection[str], rewrite: Collection[str]) -> None:
    """Raises NoSuchDamage."""
    for given, known in ((keep, NAMES[1:]), (rewrite, BY_NAME_ONLY)):
        unknown = set(given) - set(known)
        if unknown:
            raise NoSuchDamage(f"there is no damage {', '.join(sorted(unknown))}; there are {', '.join(known)}")


def proposed(spark: SparkSession, topics: Topics, results: Results, targets: dict[str, str], rules: Rules) -> Repair:
    """A new plan, and what it would change; no topic is written. `targets`: source topic to clean topic. Rights that
    only writing needs are obstacles. Raises RepairBegun, and CannotWrite where rights to read are missing.
    """
    rights.check(rights.lacking(topics, rights.for_reading(topics.names)))
    plan = job.planned(spark, topics, results, targets, rules)
    results.forget_summary()
    listing = job.listed(spark, topics, results, plan)
    lacks = rights.lacking(topics, rights.for_clean_topics(topics, targets))
    return _told(results, plan, replace(listing, obstacles=[*lacks, *listing.obstacles]), None, rules.now_ms)


def written(spark: SparkSession, topics: Topics, results: Results, targets: dict[str, str], rules: Rules) -> Repair:
    """The clean topics, by the plan that was proposed by the same rules, or a new one; goes on where a run before was
    killed. Where nothing is damaged and nothing left out, none is made. Raises RepairBegun and CannotWrite.
    """
    needed = [*rights.for_reading(topics.names), *rights.for_clean_topics(topics, targets)]
    rights.check(rights.lacking(topics, needed))
    plan = job.kept_plan(results, targets, rules)
    if plan is None:
        plan = job.planned(spark, topics, results, targets, rules)
    results.forget_summary()
    listing = job.listed(spark, topics, results, plan)
    is_needed = listing.changes or plan.begun or plan.leaves_out
    done = job.apply(spark, topics, results, plan, listing) if is_needed else None
    return _told(results, plan, listing, done, rules.now_ms)


def _told(results: Results, plan: Plan, listing: job.Listing, done: list[Written] | None, now_ms: int) -> Repair:
    summary = job.summary_of(plan, listing, done)
    report.write_report(results, summary, now_ms)
    results.write_summary(summary)
    repairs, undiagnosed = results.read_table(job.REPAIRS), results.read_table(job.UNDIAGNOSED)
    return Repair(summary, repairs, undiagnosed, tuple(listing.obstacles), tuple(listing.warnings))
