"""Runs `sluicegate-spark replay`: decides about each dead letter, and with --apply writes accepted letters back."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.repair import required_acls
from sluicegate.pipeline.jobs.repair.cluster_obstacles import replica_obstacles, transaction_obstacles
from sluicegate.pipeline.jobs.replay import report
from sluicegate.pipeline.jobs.replay.decisions import Validation
from sluicegate.pipeline.jobs.replay.letters import LetterSource
from sluicegate.pipeline.jobs.replay.listing import decide_letters
from sluicegate.pipeline.jobs.replay.locations import (
    DestinationTopics,
    dead_letter_location,
    listed_record_location,
    origins_of,
)
from sluicegate.pipeline.jobs.replay.progress import (
    RemainingRanges,
    Run,
    committed_remainder,
    groups_of,
    next_run,
    settled_remainder,
    writing_of,
)
from sluicegate.pipeline.jobs.replay.request import ReplayRequest, replay_policies
from sluicegate.pipeline.jobs.replay.writing import Headers, ReplayedPartition, ReplayPartition, write_back
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.notebook import NotebookResult
from sluicegate.pipeline.report.wording import Conclusion
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.tasks import map_in_tasks
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing.record_writer import require_no_obstacles
from sluicegate.pipeline.writing.transactions import wait_until_readable
from sluicegate.protocol.messages.fetch import LATEST

_ALL, BACK, REMAINING = "cells", "replays", "remaining"
_AT_ONCE = 4  # writing a small partition mostly waits for coordinators
_WRITTEN = "to string, to_partition bigint, records bigint, last bigint"
_MOST_REMAINING = 200
"""The maximum number of remaining letters in the summary; the table contains all of them."""
_PLACE = ("topic", "partition", "offset")
_UNFINISHABLE = "the replay could not be finished"
RemainingOf = Callable[[Topics, dict[str, str], Sequence[OffsetRange]], RemainingRanges]
"""Returns the part of the ranges that is not replayed yet, by the groups that store the progress."""


@dataclass(frozen=True, slots=True)
class ReplayWork:
    """The work of a replay.

    `letters` is the source of dead letters. `ranges` are the ranges to read, some of which may be empty. `groups` are
    the groups that store the progress. `called` is the word for a record in messages. `warnings` contains a sentence
    for each warning.
    """

    topics: Topics
    letters: LetterSource
    groups: dict[str, str]
    ranges: list[OffsetRange]
    origins: DestinationTopics
    validation: Validation
    headers: Headers
    run: Run
    called: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplayListing:
    """The decisions of a replay.

    `plans` contains what to write. `back` and `remaining` are rows of the tables. `before` contains the remaining rows
    of earlier runs.
    """

    plans: list[ReplayPartition]
    back: DataFrame
    remaining: DataFrame
    before: DataFrame | None


def dry_run_work(spark: SparkSession, topics: Topics, results: Results, request: ReplayRequest) -> ReplayWork:
    """Return the work for a dry run. Raises CannotWriteTopic and NoFindings."""
    return _work(spark, topics, results, request, committed_remainder, lambda found, _why: tuple(found))


def applied_work(spark: SparkSession, topics: Topics, results: Results, request: ReplayRequest) -> ReplayWork:
    """Return the work for writing, and fence other runs. Raises CannotWriteTopic and NoFindings."""
    return _work(spark, topics, results, request, settled_remainder, _only_if_none)


def _work(
    spark: SparkSession,
    topics: Topics,
    results: Results,
    request: ReplayRequest,
    remaining_of: RemainingOf,
    warnings_of: Callable[[list[str], str], tuple[str, ...]],
) -> ReplayWork:
    """Return the work. `warnings_of` converts obstacles and their common reason to warnings, or raises an error."""
    location = (
        dead_letter_location(topics)
        if request.findings is None
        else listed_record_location(spark, topics, request.findings)
    )
    groups = groups_of(topics, location.letters.group)
    require_no_obstacles(
        required_acls.missing_acl_sentences(topics, map(required_acls.acl_for_progress, groups.values())),
        required_acls.ACLS_MISSING,
    )
    unable = warnings_of(
        required_acls.missing_acl_sentences(topics, map(required_acls.acl_for_transactions, groups.values())),
        required_acls.ACLS_MISSING,
    )
    unable += warnings_of(transaction_obstacles(topics, min(groups.values())), _UNFINISHABLE)
    run = next_run(results)
    committed = remaining_of(topics, groups, location.ranges)
    remaining = run.unfinished_ranges(committed.ranges, groups)
    targets = location.targets(spark, remaining)
    needed = required_acls.acls_for_writing(sorted(targets))
    unable += warnings_of(required_acls.missing_acl_sentences(topics, needed), required_acls.ACLS_MISSING)
    unable += warnings_of(replica_obstacles(topics, targets), _UNFINISHABLE)
    origins = origins_of(topics, targets)
    policies = replay_policies(request.config, origins.settings, request.fix)
    validation = Validation(policies, origins.partitions, request.by, request.now_ms)
    warnings = (*unable, *committed.missing, *origins.warnings, *location.skipped_record_sentences(remaining))
    return ReplayWork(
        topics,
        location.letters,
        groups,
        remaining,
        origins,
        validation,
        request.headers,
        run,
        location.called,
        warnings,
    )


def _only_if_none(found: list[str], why: str) -> tuple[str, ...]:
    require_no_obstacles(found, why)
    return ()


def list_decisions(spark: SparkSession, work: ReplayWork) -> ReplayListing:
    """Write the tables `replays` and `remaining`. Raises the errors of `ReplayDecider.decide`."""
    results = work.run.results
    wanted = [each for each in work.ranges if each.size > 0]
    rows = results.write_table(_ALL, decide_letters(spark, work.letters, wanted, work.validation))
    back = results.write_table(BACK, rows.where("reason IS NULL").drop("reason", "reported"))
    remaining = work.run.list_remaining(rows.where("reason IS NOT NULL").drop("after", "corrected"))
    before = work.run.remaining_before(work.ranges, work.groups)
    results.write_table(REMAINING, remaining if before is None else before.unionByName(remaining))
    counts = rows.groupBy("topic", "partition").agg(f.count("*").alias("records")).collect()
    found = {TopicPartition(row.topic, row.partition): row.records for row in counts}
    offsets: dict[TopicPartition, set[int]] = {}
    for row in remaining.select(*_PLACE).toLocalIterator():
        offsets.setdefault(TopicPartition(row.topic, row.partition), set()).add(row.offset)
    plan_id = uuid4().hex[:16]
    plans = [
        ReplayPartition(plan_id, each, found.get(each.of, 0), frozenset(offsets.get(each.of, ()))) for each in wanted
    ]
    results.remove(_ALL)
    return ReplayListing(plans, back, remaining, before)


def write_listed(spark: SparkSession, work: ReplayWork, listing: ReplayListing) -> list[ReplayedPartition]:
    """Write records back and wait until readers see them. Raises CannotWriteTopic."""
    work.run.begin(work.ranges, work.groups)
    letters, validation, headers, size = work.letters, work.validation, work.headers, work.origins.batch_bytes
    topics, groups = work.topics, work.groups

    def write(plan: ReplayPartition) -> list[pa.RecordBatch]:
        writing = writing_of(topics, groups, plan.source.of, size)
        done = write_back(plan, validation, headers, letters, writing)
        return [pa.RecordBatch.from_pylist([asdict(each) for each in done])] if done else []

    rows = map_in_tasks(spark, listing.plans, lambda plan: plan.source.size, write, _WRITTEN, _AT_ONCE).collect()
    written = [ReplayedPartition(**row.asDict()) for row in rows]
    work.run.end(work.ranges, work.groups)
    wait_until_readable(_hidden(work.topics, written))
    return written


def _hidden(topics: Topics, written: Sequence[ReplayedPartition]) -> Callable[[], list[str]]:
    """Return a function that returns a sentence for each partition in which readers do not see all written records."""
    ends: dict[TopicPartition, int] = {}
    for each in written:
        of = TopicPartition(each.to, each.to_partition)
        ends[of] = max(each.last, ends.get(of, 0))
    names = tuple({of.topic for of in ends})

    def ask() -> list[str]:
        if not ends:
            return []
        with Topics(topics.bootstrap, names, topics.settings).cluster() as cluster:
            seen = cluster.offsets(list(ends), LATEST, committed=True)
        return [f"{of}: offsets {seen[of]} to {last}" for of, last in ends.items() if seen[of] <= last]

    return ask


def summary_of(work: ReplayWork, listing: ReplayListing, written: list[ReplayedPartition] | None) -> dict[str, Any]:
    """Return the summary. `written` is None for a dry run."""
    back = listing.back.groupBy("topic", "to_topic", "kept_for", "corrected").agg(
        f.count("*").alias("records"),
        *(f.min_by(name, f.struct("partition", "offset")).alias(name) for name in ("before", "after")),
        f.min(f.struct("partition", "offset")).alias("example_at"),
    )
    remaining = listing.remaining.groupBy("topic", "to_topic", "kept_for", "reason").agg(
        f.count("*").alias("records"),
        f.min_by("reported", f.struct("partition", "offset")).alias("reported"),
        f.min(f.struct("partition", "offset")).alias("example_at"),
    )
    goes, stays = (_as_dicts(rows.orderBy("topic", "to_topic", "kept_for")) for rows in (back, remaining))
    named = listing.remaining.orderBy(*_PLACE).limit(_MOST_REMAINING)
    found: dict[str, Any] = {
        "job": "replay",
        "of": work.called,
        "applied": written is not None,
        "topics": {name: _counts(name, goes, stays) for name in work.topics.names},
        "replays": goes,
        "remaining": stays,
        "remaining_records": [row.asDict() for row in named.collect()],
        "remaining_by_earlier_runs": 0 if listing.before is None else listing.before.count(),
    }
    if written is not None:
        found["written_by_this_run"] = sum(each.records for each in written)
    return found


def _counts(name: str, goes: list[dict[str, Any]], stays: list[dict[str, Any]]) -> dict[str, int]:
    its = [row for row in goes if row["topic"] == name]
    remaining = sum(row["records"] for row in stays if row["topic"] == name)
    back = sum(row["records"] for row in its)
    corrected = sum(row["records"] for row in its if row["corrected"])
    return {"records": back + remaining, "replayed": back, "corrected": corrected, "remaining": remaining}


def _as_dicts(rows: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in rows.collect()]


@dataclass(frozen=True, slots=True, repr=False)
class Replay(NotebookResult):
    """The results of a replay.

    `summary` is the content of summary.json. `replays` contains a row for each record that is written back, before and
    after. `remaining` contains the other records and their reasons. `warnings` contains a sentence for each warning.
    """

    summary: dict[str, Any]
    replays: DataFrame
    remaining: DataFrame
    warnings: tuple[str, ...]

    def conclusion(self) -> Conclusion:
        """Return the conclusion (see `NotebookResult`)."""
        return report.conclusion(self.summary)

    def table(self) -> ConsoleTable:
        """Return the table (see `NotebookResult`)."""
        return report.console_table(self.summary)


def propose_replay(spark: SparkSession, topics: Topics, results: Results, request: ReplayRequest) -> Replay:
    """List the records that a replay would write back. Writes no topic.

    Raises CannotWriteTopic, NoFindings, and the errors of `ReplayDecider.decide`.
    """
    work = dry_run_work(spark, topics, results, request)
    results.forget_summary()
    return _finish(work, list_decisions(spark, work), None)


def write_replay(spark: SparkSession, topics: Topics, results: Results, request: ReplayRequest) -> Replay:
    """Write records back. Resumes a killed run.

    Raises CannotWriteTopic, NoFindings, and the errors of `ReplayDecider.decide`.
    """
    work = applied_work(spark, topics, results, request)
    results.forget_summary()
    listing = list_decisions(spark, work)
    return _finish(work, listing, write_listed(spark, work, listing))


def _finish(work: ReplayWork, listing: ReplayListing, done: list[ReplayedPartition] | None) -> Replay:
    results, summary = work.run.results, summary_of(work, listing, done)
    report.write_report(results, summary, work.validation.now_ms)
    results.write_summary(summary)
    return Replay(summary, results.read_table(BACK), results.read_table(REMAINING), work.warnings)
