"""Runs `sluicegate-spark repair`: makes a plan, lists its changes, and with --apply writes the clean topics."""

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.repair import report, required_acls
from sluicegate.pipeline.jobs.repair.cluster_obstacles import replica_obstacles, transaction_obstacles
from sluicegate.pipeline.jobs.repair.correction import BY_NAME_ONLY, INVALID_TIMESTAMPS, Rules
from sluicegate.pipeline.jobs.repair.listing import (
    list_invalid_timestamps,
    timestamp_changes,
    unreadable_batches,
)
from sluicegate.pipeline.jobs.repair.obstacles import (
    missing_offsets,
    records_rejected_by_targets,
    remaining_zero_obstacles,
    retention_warnings,
    skipped_batch_warnings,
    target_time_warnings,
    unreadable_batch_obstacles,
    unwritable_record_sentences,
)
from sluicegate.pipeline.jobs.repair.plan import RepairPartition, RepairPlan, make_plan, plan_from
from sluicegate.pipeline.jobs.repair.report import reason_unchanged
from sluicegate.pipeline.jobs.repair.survey import survey
from sluicegate.pipeline.jobs.repair.target import (
    create_clean_topics,
    group_of,
    log_starts,
    source_settings,
    target_obstacles,
    target_settings,
)
from sluicegate.pipeline.jobs.repair.writing import RepairedPartition, write_partition
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.notebook import NotebookResult
from sluicegate.pipeline.report.wording import Conclusion
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.tasks import map_in_tasks
from sluicegate.pipeline.source.topic_ids import check_topic_ids, keep_topic_ids, topic_ids
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic, Writing, require_no_obstacles
from sluicegate.pipeline.writing.transactions import wait_until_readable

PLAN = "plan.json"
REPAIRS, UNDIAGNOSED, UNREADABLE = "repairs", "undiagnosed", "unreadable"
_AT_ONCE = 4  # writing a small partition mostly waits for coordinators
_NO_ID = "0"
_TOPIC = "{topic}"
_LONGEST_NAME = 249
_TOPIC_NAME = re.compile(rf"[a-zA-Z0-9._-]{{1,{_LONGEST_NAME}}}")
_WRITTEN = "topic string, partition bigint, records bigint, corrected bigint"


@dataclass(frozen=True, slots=True)
class RepairListing:
    """The changes that a repair would make.

    `changes` contains rows of the before-and-after table, in which `reason` states why nothing changes. `obstacles` are
    reasons that prevent writing. `warnings` are about the clean topics' retention, and about omissions. `omits_records`
    is whether clean topics get fewer records than their sources contain.
    """

    changes: list[dict[str, Any]]
    obstacles: list[str]
    warnings: list[str]
    omits_records: bool = False


class RepairBegun(PipelineError):
    """Raised if a repair was begun with another plan, or is unfinished. The message gives a fix."""


def targets_of(topics: Topics, to: str) -> dict[str, str]:
    """Return the clean topic of each source topic. Raises CannotWriteTopic.

    `to` is the name of clean topics; {topic} stands for the source topic's name.
    """
    if len(topics.names) > 1 and _TOPIC not in to:
        raise CannotWriteTopic(f"several topics cannot be written to one topic {to}; use {_TOPIC} in --to")
    found = {name: to.replace(_TOPIC, name) for name in topics.names}
    for source, target in found.items():
        if target in topics.names:
            raise CannotWriteTopic(f"{source} cannot be repaired into {target}, which is a source itself")
        if _TOPIC_NAME.fullmatch(target) is None or target in (".", ".."):
            raise CannotWriteTopic(
                f"{source} cannot be repaired into {target}: a topic's name has 1 to {_LONGEST_NAME} characters of "
                f"a-z, A-Z, 0-9, ., _ and -, but this one has {len(target)}; use another --to"
            )
    return found


def write_plan(
    spark: SparkSession, topics: Topics, results: Results, targets: dict[str, str], rules: Rules
) -> RepairPlan:
    """Make a new plan and write it to the folder. Raises RepairBegun."""
    if results.has(PLAN) and plan_from(results.read_text(PLAN)).begun:
        raise RepairBegun(
            f"a repair has already begun in {results.path('')}: continue that one with --apply, or use another --out"
        )
    ids, ranges = topic_ids(topics), topics.ranges()
    sources, there = source_settings(topics), target_settings(topics, targets)
    room = {
        name: min(its.largest_message for its in (sources[name], there.get(to, sources[name])))
        for name, to in targets.items()
    }
    plan = make_plan(ranges, targets, survey(spark, topics, ranges, rules, sources, room), rules)
    results.write_text(PLAN, plan.as_json())
    keep_topic_ids(results, ids)
    return plan


def kept_plan(results: Results, targets: dict[str, str], rules: Rules) -> RepairPlan | None:
    """Return the plan in the folder; None if it contains none with these rules. The rules' `now_ms` is ignored.

    Raises RepairBegun if the plan is about other topics, or if the repair was begun with other rules.
    """
    if not results.has(PLAN):
        return None
    plan = plan_from(results.read_text(PLAN))
    if plan.targets != targets:
        pairs = ", ".join(f"{source} to {to}" for source, to in plan.targets.items())
        raise RepairBegun(f"the plan in {results.path(PLAN)} is for {pairs}; use another --out")
    if replace(rules, now_ms=plan.rules.now_ms) == plan.rules:
        return plan
    if plan.begun:
        raise RepairBegun(
            f"the repair in {results.path('')} was begun with other --after-max-ms, --keep, --rewrite, --epoch, "
            "--retention, --skip-unreadable, --skip-unwritable or --assume-ms: use the same again, or another --out "
            "and --to"
        )
    return None


def list_changes(spark: SparkSession, topics: Topics, results: Results, plan: RepairPlan) -> RepairListing:
    """Write the tables `repairs`, `undiagnosed` and `unreadable`, and find obstacles."""
    found = results.write_table(REPAIRS, list_invalid_timestamps(spark, topics, plan))
    results.write_table(UNDIAGNOSED, found.where(f.col("damage").isNotNull() & ~f.col("solved")))
    changes = [row | {"reason": reason_unchanged(row, plan.rules)} for row in timestamp_changes(found)]
    sources, there = source_settings(topics), target_settings(topics, plan.targets)
    unwritable, skips = unwritable_record_sentences(found), plan.rules.skip_unwritable
    omits_records = plan.skips_unreadable or (skips and bool(unwritable))
    obstacles = [
        *remaining_zero_obstacles(found),
        *unreadable_batch_obstacles(plan),
        *(() if skips else (f"{each}; --skip-unwritable leaves these records out" for each in unwritable)),
        *records_rejected_by_targets(plan, sources, there),
        *target_time_warnings(plan, there, _range_of(found)),
    ]
    if not plan.begun:
        obstacles += missing_offsets(plan, log_starts(plan, topics), {})
        obstacles += _write_obstacles(topics, plan) if changes or omits_records else []
    results.write_table(UNREADABLE, unreadable_batches(spark, topics, plan))
    left_out = [f"{each}; these records are left out" for each in unwritable if skips]
    warnings = [*retention_warnings(plan, sources, there), *skipped_batch_warnings(plan), *left_out]
    return RepairListing(changes, obstacles, warnings, omits_records)


def _write_obstacles(topics: Topics, plan: RepairPlan) -> list[str]:
    targets = list(plan.targets.values())
    return [
        *transaction_obstacles(topics, group_of(targets[0], _NO_ID)),
        *target_obstacles(plan, topics),
        *replica_obstacles(topics, targets),
    ]


def _range_of(found: DataFrame) -> dict[str, tuple[int, int]]:
    """Return the earliest and the latest corrected time in each clean topic, by source topic.

    Only records with invalid timestamps count.
    """
    rows = found.where(f.col("damage").isNotNull()).groupBy("topic")
    return {
        row.topic: (row.earliest, row.latest)
        for row in rows.agg(f.min("after").alias("earliest"), f.max("after").alias("latest")).collect()
    }


def check_no_obstacles(listing: RepairListing) -> None:
    """Raise CannotWriteTopic, with all obstacles, if there are any."""
    require_no_obstacles(listing.obstacles, "the repair could not be finished")


def write_clean_topics(
    spark: SparkSession, topics: Topics, results: Results, plan: RepairPlan, listing: RepairListing
) -> list[RepairedPartition]:
    """Write the clean topics and wait until readers see all records. Resumes a killed run. Raises CannotWriteTopic."""
    check_no_obstacles(listing)
    # If the disk is full, this fails before a topic is created.
    results.stage_text(PLAN, replace(plan, begun=True).as_json())
    found = create_clean_topics(plan, topics)
    results.publish(PLAN)
    plan_id = plan.plan_id

    def write(each: RepairPartition) -> list[pa.RecordBatch]:
        to = found[each.to]
        writing = Writing(to.group_id, to.largest_message, each.codec, topics, each.to)
        done = write_partition(each, plan_id, writing)
        return [pa.RecordBatch.from_pylist([asdict(done)])]

    rows = map_in_tasks(spark, plan.partitions, lambda each: each.source.size, write, _WRITTEN, _AT_ONCE).collect()
    wait_until_readable(Topics(topics.bootstrap, tuple(plan.targets.values()), topics.settings).open_transactions)
    return [RepairedPartition(**row.asDict()) for row in rows]


def summary_of(
    plan: RepairPlan, listing: RepairListing, written: list[RepairedPartition] | None, owners: Mapping[str, str]
) -> dict[str, Any]:
    """Return the summary. `written` is None for a dry run.

    In the summary, `valid_looking` is the number of changed records whose times may be valid. `keep` and `rewrite` are
    the kinds that these options name.
    """
    topics: Mapping[str, dict[str, Any]] = {
        source: {"to": to, "offsets": 0, "records": 0, "repaired": {}, "undiagnosed": {}, "valid_looking": 0}
        | ({"owner": owners[source]} if source in owners else {})
        for source, to in plan.targets.items()
    }
    for each in plan.partitions:
        topics[each.source.of.topic]["offsets"] += each.source.end - each.source.start
        topics[each.source.of.topic]["records"] += each.contents.records
    for row in listing.changes:
        counts = topics[row["topic"]]["repaired" if row["solved"] else "undiagnosed"]
        counts[row["damage"]] = counts.get(row["damage"], 0) + row["records"]
        if row["solved"] and row["may_be_valid"]:
            topics[row["topic"]]["valid_looking"] += row["records"]
    found: dict[str, Any] = {
        "job": "repair",
        "applied": written is not None,
        "keep": sorted(plan.rules.keep),
        "rewrite": sorted(plan.rules.rewrite),
        "topics": topics,
        "changes": listing.changes,
        "obstacles": listing.obstacles,
        "warnings": listing.warnings,
    }
    if written is not None:
        found["written_by_this_run"] = sum(each.records for each in written)
    return found


class UnknownTimestampKind(ValueError):
    """Raised for an unknown kind of timestamp, or for a kind without this treatment. The message lists valid kinds."""


@dataclass(frozen=True, slots=True, repr=False)
class Repair(NotebookResult):
    """The results of a repair.

    `summary` is the content of summary.json. `repairs` contains a row for each record with an invalid timestamp, with
    the timestamps before and after, and `solved` if it changes. `undiagnosed` contains the records that stay unchanged.
    `obstacles` contains a sentence for each reason that prevents writing. `warnings` are about the clean topics'
    retention, and about omissions.
    """

    summary: dict[str, Any]
    repairs: DataFrame
    undiagnosed: DataFrame
    obstacles: tuple[str, ...]
    warnings: tuple[str, ...]

    def conclusion(self) -> Conclusion:
        """Return the conclusion (see `NotebookResult`)."""
        return report.conclusion(self.summary)

    def table(self) -> ConsoleTable:
        """Return the table (see `NotebookResult`)."""
        return report.table_of(self.summary)


def check_timestamp_kinds(keep: Collection[str], rewrite: Collection[str]) -> None:
    """Raise UnknownTimestampKind for a kind that cannot be kept or rewritten."""
    for given, known in ((keep, INVALID_TIMESTAMPS), (rewrite, BY_NAME_ONLY)):
        unknown = set(given) - set(known)
        if unknown:
            raise UnknownTimestampKind(
                f"unknown kind of timestamp {', '.join(sorted(unknown))}; expected one of {', '.join(known)}"
            )


def propose_repair(
    spark: SparkSession, topics: Topics, results: Results, targets: dict[str, str], rules: Rules
) -> Repair:
    """Make a new plan and list its changes. Writes no topic.

    `targets` maps each source topic to its clean topic. If ACLs that only writing requires are missing, they are listed
    as obstacles. Raises RepairBegun, and CannotWriteTopic if ACLs for reading are missing.
    """
    lacks = required_acls.missing_acl_sentences(topics, required_acls.acls_for_reading(topics.names))
    require_no_obstacles(lacks, required_acls.ACLS_MISSING)
    plan = write_plan(spark, topics, results, targets, rules)
    results.forget_summary()
    listing = list_changes(spark, topics, results, plan)
    lacks = required_acls.missing_acl_sentences(topics, required_acls.acls_for_clean_topics(topics, targets))
    return _finish(topics, results, plan, replace(listing, obstacles=[*lacks, *listing.obstacles]), None, rules.now_ms)


def write_repair(
    spark: SparkSession, topics: Topics, results: Results, targets: dict[str, str], rules: Rules
) -> Repair:
    """Write the clean topics with the proposed plan for the same rules, or with a new plan. Resumes a killed run.

    Writes no clean topic if there are no invalid timestamps and no omissions. Raises RepairBegun and CannotWriteTopic.
    """
    needed = [*required_acls.acls_for_reading(topics.names), *required_acls.acls_for_clean_topics(topics, targets)]
    require_no_obstacles(required_acls.missing_acl_sentences(topics, needed), required_acls.ACLS_MISSING)
    plan = kept_plan(results, targets, rules)
    if plan is not None:
        way = "Use another --out and --to" if plan.begun else "Make a new plan with a dry run"
        check_topic_ids(results, topics, way)
    if plan is None:
        plan = write_plan(spark, topics, results, targets, rules)
    results.forget_summary()
    listing = list_changes(spark, topics, results, plan)
    is_needed = listing.changes or plan.begun or listing.omits_records
    done = write_clean_topics(spark, topics, results, plan, listing) if is_needed else None
    return _finish(topics, results, plan, listing, done, rules.now_ms)


def _finish(
    topics: Topics,
    results: Results,
    plan: RepairPlan,
    listing: RepairListing,
    done: list[RepairedPartition] | None,
    now_ms: int,
) -> Repair:
    summary = summary_of(plan, listing, done, topics.owners)
    report.write_report(results, summary, now_ms)
    results.write_summary(summary)
    repairs, undiagnosed = results.read_table(REPAIRS), results.read_table(UNDIAGNOSED)
    return Repair(summary, repairs, undiagnosed, tuple(listing.obstacles), tuple(listing.warnings))
