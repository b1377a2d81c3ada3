"""`sluicegate-spark repair`: a plan, what it would change, and on --apply the clean topic."""

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.errors import PipelineError
from sluicegate.pipeline.jobs.repair import report, rights
from sluicegate.pipeline.jobs.repair.correction import BY_NAME_ONLY, NAMES, Rules
from sluicegate.pipeline.jobs.repair.listing import before_and_after, damaged, odd_headers_in, unreadable_batches
from sluicegate.pipeline.jobs.repair.obstacles import (
    what_cannot_be_read,
    what_is_gone,
    what_is_left_out,
    what_retention_takes,
    what_targets_reject,
    zeros_that_stay,
)
from sluicegate.pipeline.jobs.repair.plan import PartitionPlan, Plan, make_plan, plan_from
from sluicegate.pipeline.jobs.repair.record_writers import CannotWrite, Writing
from sluicegate.pipeline.jobs.repair.report import why_left
from sluicegate.pipeline.jobs.repair.survey import survey
from sluicegate.pipeline.jobs.repair.target import log_starts, prepare, source_settings, target_settings
from sluicegate.pipeline.jobs.repair.transactions import wait_until_readable
from sluicegate.pipeline.jobs.repair.writing import Written, write_partition
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.source.tasks import over
from sluicegate.pipeline.topics import Topics

PLAN = "plan.json"
REPAIRS, UNDIAGNOSED, UNREADABLE = "repairs", "undiagnosed", "unreadable"
_AT_ONCE = 4  # a small partition's writing is mostly waiting for coordinators
_TOPIC = "{topic}"
_LONGEST_NAME = 249
_TOPIC_NAME = re.compile(rf"[a-zA-Z0-9._-]{{1,{_LONGEST_NAME}}}")
_WRITTEN = "topic string, partition bigint, records bigint, corrected bigint"


@dataclass(frozen=True, slots=True)
class Listing:
    """`changes`: the rows of the before-and-after table, `left` saying why where nothing changes; `obstacles`: what
    would stop the writing; `warnings`: what to know of the clean topics' retention, and of what is left out; `exactly`:
    the source's partitions that hold what client libraries do not write.
    """

    changes: list[dict[str, Any]]
    obstacles: list[str]
    warnings: list[str]
    exactly: frozenset[TopicPartition] = frozenset()


class RepairBegun(PipelineError):
    """A repair was begun with another plan, or is to be finished first; the text says what to do."""


def targets_of(topics: Topics, to: str) -> dict[str, str]:
    """Source topic to clean topic; `to` names it, {topic} in it stands for the source's name. Raises CannotWrite."""
    if len(topics.names) > 1 and _TOPIC not in to:
        raise CannotWrite(f"several topics cannot all be written to {to}; have {_TOPIC} in --to")
    found = {name: to.replace(_TOPIC, name) for name in topics.names}
    for source, target in found.items():
        if target in topics.names:
            raise CannotWrite(f"{source} cannot be repaired into {target}, which is read itself")
        if _TOPIC_NAME.fullmatch(target) is None or target in (".", ".."):
            raise CannotWrite(
                f"{source} cannot be repaired into {target}: a topic's name has 1 to {_LONGEST_NAME} of a-z, A-Z, 0-9, "
                f"., _ and -, and this one has {len(target)} characters; give another by --to"
            )
    return found


def planned(spark: SparkSession, topics: Topics, results: Results, targets: dict[str, str], rules: Rules) -> Plan:
    """A new plan, written down. Raises RepairBegun."""
    if results.has(PLAN) and plan_from(results.read_text(PLAN)).begun:
        raise RepairBegun(
            f"a repair was begun in {results.path('')} already: go on with it by --apply, or use another --out"
        )
    ranges = topics.ranges()
    sources, there = source_settings(topics), target_settings(topics, targets)
    room = {
        name: min(its.largest_message for its in (sources[name], there.get(to, sources[name])))
        for name, to in targets.items()
    }
    plan = make_plan(ranges, targets, survey(spark, topics, ranges, rules, sources, room), rules)
    results.write_text(PLAN, plan.as_json())
    return plan


def kept_plan(results: Results, targets: dict[str, str], rules: Rules) -> Plan | None:
    """The plan that is written down; None when there is none by these rules, whose moment does not matter.

    Raises RepairBegun when it is about other topics, or has been begun by other rules.
    """
    if not results.has(PLAN):
        return None
    plan = plan_from(results.read_text(PLAN))
    if plan.targets != targets:
        held = ", ".join(f"{source} to {to}" for source, to in plan.targets.items())
        raise RepairBegun(f"the plan in {results.path(PLAN)} is for {held}; use another --out")
    if replace(rules, now_ms=plan.rules.now_ms) == plan.rules:
        return plan
    if plan.begun:
        raise RepairBegun(
            f"the repair in {results.path('')} was begun with other --after-max-ms, --keep, --rewrite, --epoch, "
            "--retention, --skip-unreadable or --assume-ms: go on with those, or use another --out and --to"
        )
    return None


def listed(spark: SparkSession, topics: Topics, results: Results, plan: Plan) -> Listing:
    """Write the tables `repairs`, `undiagnosed` and `unreadable`, and find what would stop it."""
    found = results.write_table(REPAIRS, damaged(spark, topics, plan))
    results.write_table(UNDIAGNOSED, found.where(f.col("damage").isNotNull() & ~f.col("solved")))
    changes = [row | {"left": why_left(row, plan.rules)} for row in before_and_after(found)]
    sources, there = source_settings(topics), target_settings(topics, plan.targets)
    obstacles = [
        *zeros_that_stay(found),
        *what_cannot_be_read(plan),
        *what_targets_reject(plan, sources, there),
    ]
    if not plan.begun:
        obstacles += what_is_gone(plan, log_starts(plan, topics), {})
    results.write_table(UNREADABLE, unreadable_batches(spark, topics, plan))
    odd = odd_headers_in(found)
    warnings = [*what_retention_takes(plan, sources, there), *what_is_left_out(plan), *map(str, odd)]
    return Listing(changes, obstacles, warnings, frozenset(each.of for each in odd))


def check_no_obstacles(listing: Listing) -> None:
    """Raises CannotWrite, which names them all."""
    if listing.obstacles:
        raise CannotWrite("nothing is written yet, because it could not be finished:\n" + "\n".join(listing.obstacles))


def apply(spark: SparkSession, topics: Topics, results: Results, plan: Plan, listing: Listing) -> list[Written]:
    """Write the clean topics until readers see all; goes on where a run before was killed. Raises CannotWrite."""
    check_no_obstacles(listing)
    results.stage_text(PLAN, replace(plan, begun=True).as_json())  # a full disk is known before a topic is made
    found = prepare(plan, topics)
    results.publish(PLAN)
    plan_id, exactly = plan.plan_id, listing.exactly

    def write(each: PartitionPlan) -> list[pa.RecordBatch]:
        to = found[each.to]
        is_exact = each.source.of in exactly
        writing = Writing(to.group_id, to.largest_message, each.codec, topics, each.to, is_exact)
        done = write_partition(each, plan_id, writing)
        return [pa.RecordBatch.from_pylist([asdict(done)])]

    rows = over(spark, plan.partitions, lambda each: each.source.size, write, _WRITTEN, _AT_ONCE).collect()
    wait_until_readable(Topics(topics.bootstrap, tuple(plan.targets.values()), topics.settings).held_back)
    return [Written(**row.asDict()) for row in rows]


def summary_of(plan: Plan, listing: Listing, written: list[Written] | None) -> dict[str, Any]:
    """`written` is None for a dry run. `sound_looking`: how many records change though their times may be sound."""
    topics: Mapping[str, dict[str, Any]] = {
        source: {"to": to, "offsets": 0, "records": 0, "repaired": {}, "undiagnosed": {}, "sound_looking": 0}
        for source, to in plan.targets.items()
    }
    for each in plan.partitions:
        topics[each.source.of.topic]["offsets"] += each.source.end - each.source.start
        topics[each.source.of.topic]["records"] += each.contents.records
    for row in listing.changes:
        counts = topics[row["topic"]]["repaired" if row["solved"] else "undiagnosed"]
        counts[row["damage"]] = counts.get(row["damage"], 0) + row["records"]
        if row["solved"] and row["may_be_sound"]:
            topics[row["topic"]]["sound_looking"] += row["records"]
    found: dict[str, Any] = {
        "job": "repair",
        "applied": written is not None,
        "topics": topics,
        "changes": listing.changes,
        "obstacles": listing.obstacles,
        "warnings": listing.warnings,
    }
    if written is not None:
        found["written_by_this_run"] = sum(each.records for each in written)
    return found


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


def propose_repair(
    spark: SparkSession, topics: Topics, results: Results, targets: dict[str, str], rules: Rules
) -> Repair:
    """A new plan, and what it would change; no topic is written. `targets`: source topic to clean topic. Rights that
    only writing needs are obstacles. Raises RepairBegun, and CannotWrite where rights to read are missing.
    """
    rights.check(rights.lacking(topics, rights.for_reading(topics.names)))
    plan = planned(spark, topics, results, targets, rules)
    results.forget_summary()
    listing = listed(spark, topics, results, plan)
    lacks = rights.lacking(topics, rights.for_clean_topics(topics, targets))
    return _told(results, plan, replace(listing, obstacles=[*lacks, *listing.obstacles]), None, rules.now_ms)


def write_repair(
    spark: SparkSession, topics: Topics, results: Results, targets: dict[str, str], rules: Rules
) -> Repair:
    """The clean topics, by the plan that was proposed by the same rules, or a new one; goes on where a run before was
    killed. Where nothing is damaged and nothing left out, none is made. Raises RepairBegun and CannotWrite.
    """
    needed = [*rights.for_reading(topics.names), *rights.for_clean_topics(topics, targets)]
    rights.check(rights.lacking(topics, needed))
    plan = kept_plan(results, targets, rules)
    if plan is None:
        plan = planned(spark, topics, results, targets, rules)
    results.forget_summary()
    listing = listed(spark, topics, results, plan)
    is_needed = listing.changes or plan.begun or plan.leaves_out
    done = apply(spark, topics, results, plan, listing) if is_needed else None
    return _told(results, plan, listing, done, rules.now_ms)


def _told(results: Results, plan: Plan, listing: Listing, done: list[Written] | None, now_ms: int) -> Repair:
    summary = summary_of(plan, listing, done)
    report.write_report(results, summary, now_ms)
    results.write_summary(summary)
    repairs, undiagnosed = results.read_table(REPAIRS), results.read_table(UNDIAGNOSED)
    return Repair(summary, repairs, undiagnosed, tuple(listing.obstacles), tuple(listing.warnings))
