"""Runs `sluicegate-spark watch`, which processes new records in batches.

The watch plans batches itself instead of using Spark's streaming, because a batch needs aggregates and not rows. As in
the other jobs, executors aggregate and validate chunks of partitions where they read them. A batch's rows contain its
name and replace rows with the same name. A batch is done when the progress includes it; a batch of a killed run or of
lost executors is repeated.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.audit.policies import Policies
from sluicegate.pipeline.jobs.profile.invalid_timestamps import POSSIBLE_CODES, VALID_TIMESTAMP, InvalidTimestampKind
from sluicegate.pipeline.jobs.watch import findings
from sluicegate.pipeline.jobs.watch.denied import DeniedTopics
from sluicegate.pipeline.jobs.watch.producers import DistanceCounts, FindingSubject, Occurrence, Producers
from sluicegate.pipeline.jobs.watch.progress import WatchProgress, note_sent, progress_in
from sluicegate.pipeline.jobs.watch.reading import (
    COLUMNS,
    DDL,
    HOURS,
    MISSING,
    UNREADABLE,
    VIOLATIONS,
    PartitionStates,
    WatchBounds,
    WatchChunk,
    ids_of,
    read_states,
    reader,
)
from sluicegate.pipeline.jobs.watch.report import write_report
from sluicegate.pipeline.jobs.watch.webhook import Webhook
from sluicegate.pipeline.kafka.cluster import TopicTrouble, TopicUnknown
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.runs.tables import Tables, batch_name, day_of
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.tasks import map_in_tasks
from sluicegate.pipeline.source.topics import Topics

FINDINGS = "findings"
OFFSETS_A_BATCH = 20_000_000
_ALL = "cells"
_KNOWN_BY = (
    *("topic", "producer_id", "damage", "ahead_beyond_ms", "behind_beyond_ms"),
    *("verdict", "reason", "rule"),
)
_VALID = (VALID_TIMESTAMP, InvalidTimestampKind.PAST.value)
_INVALID_TIMESTAMPS = frozenset(kind.value for kind in InvalidTimestampKind)
_MOST_RECENT, _MOST_OWED = 100, 1000

_MarkKey = tuple[str, int, FindingSubject, str]
"""(topic, producer id, subject, what)"""
_SideKey = tuple[str, int, FindingSubject]
"""(topic, producer id, side)"""


@dataclass(frozen=True, slots=True)
class WatchSubject:
    """The subject of a watch.

    `policies` is None if nothing is audited. A kind of invalid timestamp has ended when its producer has written for
    `quiet_ms` without it. `at_most` is the maximum number of offsets in a batch.
    """

    topics: Topics
    bounds: WatchBounds
    policies: Policies | None
    quiet_ms: int
    at_most: int


class Watch:
    """A watch that continues from the folder's progress."""

    def __init__(
        self,
        spark: SparkSession,
        watching: WatchSubject,
        results: Results,
        tables: Tables,
        stream: str,
        webhook: Webhook | None,
    ) -> None:
        self._spark = spark
        self._watching = watching
        self._results = results
        self._tables = tables
        self._stream = stream
        self._webhook = webhook
        self._progress = progress_in(results)
        self._is_unfinished = self._is_again = True
        self._denied = DeniedTopics(watching.topics)
        self._deleted: set[str] = set()
        self._notices: list[str] = []

    @property
    def progress(self) -> WatchProgress:
        """Return the latest progress."""
        return self._progress

    def batch(self) -> list[dict[str, Any]] | None:
        """Process new records and return the findings; None if there are no new records.

        Raises TopicChanged, DifferentWatch, BadTables and the errors of reading. It can be called again after an error.
        """
        cells, states, chunks = self._read_new()
        if cells is None:
            return None
        before, number = self._progress, self._progress.number + 1
        name = batch_name(self._stream, number)
        self._is_again, self._is_unfinished = self._is_unfinished, True
        sums = self._written(cells, name)
        producers = Producers.of_rows(before.producers, self._watching.quiet_ms)
        now_ms = time.time_ns() // 1_000_000
        found = [findings.finding_row(each, name, now_ms) for each in producers.take(*_occurrences(sums))]
        self._write_findings(found, name)
        progress = WatchProgress(
            number,
            {**before.places, **{chunk.wanted.of: states.place_after(chunk) for chunk in chunks}},
            producers.rows(),
            ([*before.owed, *found] if self._webhook is not None else [])[-_MOST_OWED:],
            [*before.recent, *found][-_MOST_RECENT:],
            _added(before.topics, sums),
            before.ids,
        )
        progress.keep(self._results)
        self._progress, self._is_unfinished = progress, False
        self._results.remove(_ALL)
        summary = self.summary()
        write_report(self._results, summary, now_ms)
        self._results.write_summary(summary)
        return found

    def take_notices(self) -> list[str]:
        """Return a sentence for each topic that was deleted, created again, denied or granted since the last call."""
        taken, self._notices = self._notices, []
        return [*taken, *self._denied.take_notices()]

    def send_findings(self) -> str | None:
        """Send unsent findings to the webhook. Return None, or the reason why sending failed."""
        owed = self._progress.owed
        if self._webhook is None or not owed:
            return None
        trouble = self._webhook.send(self._stream, owed)
        if trouble is None:
            note_sent(self._results, self._progress.number)
            self._progress.owed.clear()
        return trouble

    def summary(self) -> dict[str, Any]:
        """Return the sums over all batches and the latest findings."""
        topics = self._watching.topics
        return {
            "job": "watch",
            "batches": self._progress.number + 1,
            "topics": {name: topics.owner(name) | self._progress.topics.get(name, _nothing()) for name in topics.names},
            "findings": self._progress.recent,
            "deleted": sorted(self._deleted),
            "denied": self._denied.names,
        }

    def _read_new(self) -> tuple[DataFrame | None, PartitionStates, Sequence[WatchChunk]]:
        """Return the rows for new records (None if there are none) and the topics' state.

        If a topic is deleted meanwhile, its rows are dropped, because they may come from another topic with the same
        name.
        """
        while True:
            topics = self._denied.readable()
            try:
                states = read_states(topics)
            except TopicUnknown:
                raise
            except TopicTrouble:
                if not self._denied.find(topics):
                    raise
                continue
            self._learn(topics, states.ids)
            chunks = states.chunks(self._progress.places, self._watching.at_most)
            if not chunks:
                return None, states, chunks
            reads = replace(topics, names=tuple(sorted({chunk.wanted.of.topic for chunk in chunks})))
            planned = {name: states.ids[name] for name in reads.names}
            try:
                cells = self._read(chunks)
            except PySparkException:
                if not self._denied.find(reads) and ids_of(reads) == planned:
                    raise
            else:
                if ids_of(reads) == planned:
                    return cells, states, chunks

    def _learn(self, topics: Topics, ids: Mapping[str, str]) -> None:
        """Record which topics exist and which were created again."""
        known = self._progress.ids
        for name in topics.names:
            if name not in ids:
                if name not in self._deleted:
                    self._deleted.add(name)
                    self._notices.append(
                        f"{name} was deleted: its counts are kept, and it is watched again if it is recreated"
                    )
                continue
            if ids[name] and known.get(name, ids[name]) != ids[name]:
                self._notices.append(f"{name} was recreated (its topic id changed): it is read from the beginning")
            elif name in self._deleted:
                self._notices.append(f"{name} exists again")
            self._deleted.discard(name)
        self._progress = self._progress.of_topics(ids)

    def _read(self, chunks: Sequence[WatchChunk]) -> DataFrame:
        watching = self._watching
        work = reader(source_options(watching.topics.options), watching.bounds, watching.policies)
        return self._results.write_table(
            _ALL, map_in_tasks(self._spark, chunks, lambda chunk: chunk.wanted.size, work, DDL)
        )

    def _written(self, cells: DataFrame, name: str) -> dict[str, list[dict[str, Any]]]:
        """Write the tables and return the sums by producer."""
        sums = _added_up(cells)
        for what, columns in COLUMNS.items():
            rows = cells.where(f.col("what") == what).selectExpr(*(column.strip() for column in columns.split(",")))
            self._replace(what, rows, name, is_empty=not sums[what])
        return sums

    def _write_findings(self, found: list[dict[str, Any]], name: str) -> None:
        self._replace(FINDINGS, self._spark.createDataFrame(found, findings.DDL), name, is_empty=not found)

    def _replace(self, what: str, rows: DataFrame, name: str, *, is_empty: bool) -> None:
        """Replace the batch's rows. Empty rows matter only if this run or a killed run may have begun it before."""
        if self._is_again or not is_empty:
            dated = rows.withColumn("day", day_of(f.col("hour"))).withColumn("batch", f.lit(name))
            self._tables.replace(f"watch_{what}", dated, "batch", [name])


def _added_up(cells: DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return sums by topic, producer and finding: the number `counted`, and the first and the last hour."""
    counted = (
        f.when(f.col("what") == HOURS, f.col("records"))
        .when(f.col("what") == VIOLATIONS, f.col("bad_records"))
        .when(f.col("what") == UNREADABLE, f.col("batches"))
        .otherwise(f.col("last_offset") - f.col("first_offset") + 1)
    )
    hours = (
        f.min("hour").alias("first_hour"),
        f.min("hour_until").alias("first_until"),
        f.max("hour").alias("last_hour"),
        f.max("hour_until").alias("last_until"),
    )
    found: dict[str, list[dict[str, Any]]] = {what: [] for what in COLUMNS}
    for row in cells.groupBy("what", *_KNOWN_BY).agg(f.sum(counted).alias("counted"), *hours).collect():
        found[row.what].append(row.asDict())  # looking up a Row's field searches all its names
    return found


def _occurrences(sums: dict[str, list[dict[str, Any]]]) -> tuple[list[Occurrence], list[DistanceCounts]]:
    marks: dict[_MarkKey, Occurrence] = {}
    counts: dict[_SideKey, dict[int, int]] = {}
    hours: dict[_SideKey, int] = {}
    for row in sums[HOURS]:
        topic, producer_id = row["topic"], row["producer_id"]
        if row["damage"] in _INVALID_TIMESTAMPS:
            _mark(marks, (topic, producer_id, FindingSubject.INVALID_TIMESTAMP, row["damage"]), row)
        for side in (FindingSubject.AHEAD, FindingSubject.BEHIND):
            side_key = (topic, producer_id, side)
            its = counts.setdefault(side_key, {})
            hours[side_key] = max(hours.get(side_key, 0), row["last_hour"])
            if row["damage"] in _VALID:
                step = row[f"{side}_beyond_ms"]
                its[step] = its.get(step, 0) + row["counted"]
    for row in sums[VIOLATIONS]:
        rule = f" by {row['rule']}" if row["rule"] is not None else ""
        what = f"{row['verdict']}: {row['reason']}{rule}"
        _mark(marks, (row["topic"], row["producer_id"], FindingSubject.VIOLATION, what), row)
    return list(marks.values()), [
        DistanceCounts(*side_key, counts=its, last_hour=hours[side_key]) for side_key, its in counts.items()
    ]


def _mark(marks: dict[_MarkKey, Occurrence], what: _MarkKey, row: dict[str, Any]) -> None:
    known = marks.get(what)
    first, last = (row["first_hour"], row["first_until"]), (row["last_hour"], row["last_until"])
    records = row["counted"]
    if known is not None:
        first = min(first[0], known.first_hour), min(first[1], known.first_until)
        last = max(last[0], known.last_hour), max(last[1], known.last_until)
        records += known.records
    marks[what] = Occurrence(*what, records, *first, *last)


def _added(topics: dict[str, dict[str, Any]], sums: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(json.dumps(topics))
    for row in sums[HOURS]:
        topic, damage = found.setdefault(row["topic"], _nothing()), row["damage"]
        topic["records"] += row["counted"]
        if damage in _INVALID_TIMESTAMPS:
            topic["damage"][damage] = topic["damage"].get(damage, 0) + row["counted"]
        at_most = topic.setdefault("damage_at_most", {})  # the progress of earlier releases lacks this entry
        for name, codes in POSSIBLE_CODES.items():
            if damage in codes:
                at_most[name] = at_most.get(name, 0) + row["counted"]
    for row in sums[VIOLATIONS]:
        violations = found.setdefault(row["topic"], _nothing())["violations"]
        violations[row["reason"]] = violations.get(row["reason"], 0) + row["counted"]
    for what in (MISSING, UNREADABLE):
        for row in sums[what]:
            topic = found.setdefault(row["topic"], _nothing())
            # The progress of earlier releases has no count of unreadable records.
            topic[what] = topic.get(what, 0) + row["counted"]
    return found


def _nothing() -> dict[str, Any]:
    return {"records": 0, "damage": {}, "damage_at_most": {}, "violations": {}, "missing": 0, "unreadable": 0}
