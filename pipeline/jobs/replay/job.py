"""`sluicegate-spark replay`: what becomes of each dead letter, and on --apply what is good back to its topic."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.repair import rights
from sluicegate.pipeline.jobs.repair.transactions import wait_until_readable
from sluicegate.pipeline.jobs.replay import report
from sluicegate.pipeline.jobs.replay.decisions import Validation
from sluicegate.pipeline.jobs.replay.letters import Letters
from sluicegate.pipeline.jobs.replay.listing import decided
from sluicegate.pipeline.jobs.replay.locations import Origins, lying_found, lying_kept, origins_of
from sluicegate.pipeline.jobs.replay.progress import Run, as_committed, as_settled, groups_of, next_run, writing_of
from sluicegate.pipeline.jobs.replay.request import ReplayRequest, replay_policies
from sluicegate.pipeline.jobs.replay.writing import Headers, PartitionPlan, Written, write_back
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.source.tasks import over
from sluicegate.pipeline.topics import Topics
from sluicegate.protocol.messages.fetch import LATEST

_ALL, BACK, LEFT = "cells", "replays", "left"
_AT_ONCE = 4  # a small partition's writing is mostly waiting for coordinators
_WRITTEN = "to string, to_partition bigint, records bigint, last bigint"
_MOST_LEFT = 200
"""Of those that the summary names; the table has all."""
_PLACE = ("topic", "partition", "offset")
LeftOf = Callable[[Topics, dict[str, str], Sequence[OffsetRange]], list[OffsetRange]]
"""Of ranges, by the groups that keep the progress, what is not replayed yet."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be replayed: `letters` within `ranges`, some perhaps empty. `groups` keep the progress. `called`: what
    a record is to people; `warnings`: a sentence for each thing that they should know.
    """

    topics: Topics
    letters: Letters
    groups: dict[str, str]
    ranges: list[OffsetRange]
    origins: Origins
    validation: Validation
    headers: Headers
    run: Run
    called: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """`plans`: what is to be written; `back` and `left` are the rows of the tables, `before` what earlier runs left."""

    plans: list[PartitionPlan]
    back: DataFrame
    left: DataFrame
    before: DataFrame | None


def looked_at(spark: SparkSession, topics: Topics, results: Results, asked: ReplayRequest) -> Work:
    """For a dry run. Raises CannotWrite and NoFindings."""
    return _work(spark, topics, results, asked, as_committed, tuple)


def taken_up(spark: SparkSession, topics: Topics, results: Results, asked: ReplayRequest) -> Work:
    """To be written; nobody else goes on with it. Raises CannotWrite and NoFindings."""
    return _work(spark, topics, results, asked, as_settled, _only_if_none)


def _work(
    spark: SparkSession,
    topics: Topics,
    results: Results,
    asked: ReplayRequest,
    left_of: LeftOf,
    warnings_of: Callable[[list[str]], tuple[str, ...]],
) -> Work:
    """`warnings_of`: what to tell of rights that are missing."""
    lying = lying_kept(topics) if asked.findings is None else lying_found(spark, topics, asked.findings)
    groups = groups_of(topics, lying.letters.group)
    rights.check(rights.lacking(topics, map(rights.for_progress, groups.values())))
    unable = warnings_of(rights.lacking(topics, map(rights.for_transactions, groups.values())))
    run = next_run(results)
    left = run.not_done(left_of(topics, groups, lying.ranges), groups)
    targets = lying.targets(spark, left)
    unable += warnings_of(rights.lacking(topics, rights.for_writing(sorted(targets))))
    origins = origins_of(topics, targets)
    policies = replay_policies(asked.config, origins.settings, asked.fix)
    validation = Validation(policies, origins.partitions, asked.by, asked.now_ms)
    warnings = (*unable, *origins.warnings, *lying.passed_over(left))
    return Work(topics, lying.letters, groups, left, origins, validation, asked.headers, run, lying.called, warnings)


def _only_if_none(lacks: list[str]) -> tuple[str, ...]:
    rights.check(lacks)
    return ()


def listed(spark: SparkSession, work: Work) -> Listing:
    """Write the tables `replays` and `left`. Raises what deciding raises."""
    results = work.run.results
    wanted = [each for each in work.ranges if each.size > 0]
    rows = results.write_table(_ALL, decided(spark, work.letters, wanted, work.validation))
    back = results.write_table(BACK, rows.where("why IS NULL").drop("why", "told", "is_exact"))
    left = work.run.list_left(rows.where("why IS NOT NULL").drop("after", "corrected", "is_exact"))
    before = work.run.left_before(work.ranges, work.groups)
    results.write_table(LEFT, left if before is None else before.unionByName(left))
    counts = rows.groupBy("topic", "partition").agg(f.count("*").alias("records"), f.bool_or("is_exact").alias("exact"))
    found = {TopicPartition(row.topic, row.partition): (row.records, bool(row.exact)) for row in counts.collect()}
    offsets: dict[TopicPartition, set[int]] = {}
    for row in left.select(*_PLACE).toLocalIterator():
        offsets.setdefault(TopicPartition(row.topic, row.partition), set()).add(row.offset)
    plan_id = uuid4().hex[:16]
    plans = []
    for each in wanted:
        records, is_exact = found.get(each.of, (0, False))
        plans.append(PartitionPlan(plan_id, each, records, frozenset(offsets.get(each.of, ())), is_exact))
    results.remove(_ALL)
    return Listing(plans, back, left, before)


def apply(spark: SparkSession, work: Work, listing: Listing) -> list[Written]:
    """Write what goes back, until readers see all of it. Raises CannotWrite."""
    work.run.begin(work.ranges, work.groups)
    letters, validation, headers, size = work.letters, work.validation, work.headers, work.origins.batch_bytes
    topics, groups = work.topics, work.groups

    def write(plan: PartitionPlan) -> list[pa.RecordBatch]:
        writing = writing_of(topics, groups, plan.source.of, size, plan.is_exact)
        done = write_back(plan, validation, headers, letters, writing)
        return [pa.RecordBatch.from_pylist([asdict(each) for each in done])] if done else []

    rows = over(spark, listing.plans, lambda plan: plan.source.size, write, _WRITTEN, _AT_ONCE).collect()
    written = [Written(**row.asDict()) for row in rows]
    work.run.end(work.ranges, work.groups)
    wait_until_readable(_hidden(work.topics, written))
    return written


def _hidden(topics: Topics, written: Sequence[Written]) -> Callable[[], list[str]]:
    """A sentence for each partition where readers do not see yet what was written."""
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


def summary_of(work: Work, listing: Listing, written: list[Written] | None) -> dict[str, Any]:
    """`written` is None for a dry run."""
    back = listing.back.groupBy("topic", "to_topic", "kept_for", "corrected").agg(
        f.count("*").alias("records"),
        *(f.min_by(name, f.struct("partition", "offset")).alias(name) for name in ("before", "after")),
        f.min(f.struct("partition", "offset")).alias("example_at"),
    )
    left = listing.left.groupBy("topic", "to_topic", "kept_for", "why").agg(
        f.count("*").alias("records"),
        f.min_by("told", f.struct("partition", "offset")).alias("told"),
        f.min(f.struct("partition", "offset")).alias("example_at"),
    )
    goes, stays = (_as_dicts(rows.orderBy("topic", "to_topic", "kept_for")) for rows in (back, left))
    named = listing.left.orderBy(*_PLACE).limit(_MOST_LEFT)
    found: dict[str, Any] = {
        "job": "replay",
        "of": work.called,
        "applied": written is not None,
        "topics": {name: _counts(name, goes, stays) for name in work.topics.names},
        "replays": goes,
        "left": stays,
        "left_records": [row.asDict() for row in named.collect()],
        "left_by_earlier_runs": 0 if listing.before is None else listing.before.count(),
    }
    if written is not None:
        found["written_by_this_run"] = sum(each.records for each in written)
    return found


def _counts(name: str, goes: list[dict[str, Any]], stays: list[dict[str, Any]]) -> dict[str, int]:
    its = [row for row in goes if row["topic"] == name]
    left = sum(row["records"] for row in stays if row["topic"] == name)
    back = sum(row["records"] for row in its)
    corrected = sum(row["records"] for row in its if row["corrected"])
    return {"records": back + left, "replayed": back, "corrected": corrected, "left": left}


def _as_dicts(rows: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in rows.collect()]


@dataclass(frozen=True, slots=True)
class Replay:
    """`summary`: what summary.json holds. `replays`: a row for each record that goes back, before and after; `left`:
    those that do not, and why. `warnings`: a sentence for each thing to know.
    """

    summary: dict[str, Any]
    replays: DataFrame
    left: DataFrame
    warnings: tuple[str, ...]


def propose_replay(spark: SparkSession, topics: Topics, results: Results, asked: ReplayRequest) -> Replay:
    """What would go back; no topic is written. Raises CannotWrite, NoFindings, and what deciding raises."""
    work = looked_at(spark, topics, results, asked)
    results.forget_summary()
    return _told(work, listed(spark, work), None)


def write_replay(spark: SparkSession, topics: Topics, results: Results, asked: ReplayRequest) -> Replay:
    """What goes back, written; goes on where a run before was killed. Raises CannotWrite, NoFindings, and what deciding
    raises.
    """
    work = taken_up(spark, topics, results, asked)
    results.forget_summary()
    listing = listed(spark, work)
    return _told(work, listing, apply(spark, work, listing))


def _told(work: Work, listing: Listing, done: list[Written] | None) -> Replay:
    results, summary = work.run.results, summary_of(work, listing, done)
    report.write_report(results, summary, work.validation.now_ms)
    results.write_summary(summary)
    return Replay(summary, results.read_table(BACK), results.read_table(LEFT), work.warnings)
