"""`sluicegate-spark watch`: batch by batch, what has come since the last one.

Batches are planned here and not by Spark's streaming, because what a batch needs is not rows: a piece of a partition is
added up and validated where it is read, as the other jobs do. A batch's rows have its name. It is written in place
of what
bears the same name, and is done once progress says so: one that was killed, or whose executors were lost, is done
again.
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
from sluicegate.pipeline.jobs.profile.damage import NO_DAMAGE, Damage
from sluicegate.pipeline.jobs.watch import findings
from sluicegate.pipeline.jobs.watch.chunks import Look, Piece, ids_of, look_at
from sluicegate.pipeline.jobs.watch.producers import About, Distance, Producers, Seen
from sluicegate.pipeline.jobs.watch.progress import Progress, note_told, progress_in
from sluicegate.pipeline.jobs.watch.reading import COLUMNS, DDL, GONE, HOURS, UNREADABLE, VIOLATIONS, Bounds, reader
from sluicegate.pipeline.jobs.watch.report import write_report
from sluicegate.pipeline.jobs.watch.webhook import Webhook
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.tasks import over
from sluicegate.pipeline.tables.tables import Tables, batch_name, day_of
from sluicegate.pipeline.topics import Topics

FINDINGS = "findings"
OFFSETS_A_BATCH = 20_000_000
_ALL = "cells"
_KNOWN_BY = (
    *("topic", "producer_id", "damage", "ahead_beyond_ms", "behind_beyond_ms"),
    *("verdict", "reason", "rule"),
)
_SOUND = (NO_DAMAGE, Damage.PAST.value)
_MOST_RECENT, _MOST_OWED = 100, 1000

_Mark = tuple[str, int, About, str]
"""(topic, producer id, about, what)"""
_Side = tuple[str, int, About]
"""(topic, producer id, side)"""


@dataclass(frozen=True, slots=True)
class Watching:
    """What a watch is about. `policies`: None audits nothing. `quiet_ms`: for so long a producer must write without a
    damage for it to have ended. `at_most`: so many offsets a batch.
    """

    topics: Topics
    bounds: Bounds
    policies: Policies | None
    quiet_ms: int
    at_most: int


class Watch:
    """One that goes on where the folder says."""

    def __init__(
        self,
        spark: SparkSession,
        watching: Watching,
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
        self._deleted: set[str] = set()
        self._notices: list[str] = []

    @property
    def progress(self) -> Progress:
        """As it was kept last."""
        return self._progress

    def batch(self) -> list[dict[str, Any]] | None:
        """Take what is new, and return the findings; None where nothing is new. Raises TopicChanged, OtherWatch,
        BadTables and what reading raises; it can be asked again then.
        """
        cells, look, pieces = self._read_new()
        if cells is None:
            return None
        before, number = self._progress, self._progress.number + 1
        name = batch_name(self._stream, number)
        self._is_again, self._is_unfinished = self._is_unfinished, True
        sums = self._written(cells, name)
        producers = Producers.of_rows(before.producers, self._watching.quiet_ms)
        now_ms = time.time_ns() // 1_000_000
        found = [findings.as_row(each, name, now_ms) for each in producers.take(*_seen(sums))]
        self._write_findings(found, name)
        progress = Progress(
            number,
            {**before.places, **{piece.wanted.of: look.place_behind(piece) for piece in pieces}},
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
        """A sentence for each topic that was deleted or created again since the last call."""
        taken, self._notices = self._notices, []
        return taken

    def tell(self) -> str | None:
        """The webhook what it has not been told; None, or why it does not know it yet."""
        owed = self._progress.owed
        if self._webhook is None or not owed:
            return None
        trouble = self._webhook.tell(self._stream, owed)
        if trouble is None:
            note_told(self._results, self._progress.number)
            self._progress.owed.clear()
        return trouble

    def summary(self) -> dict[str, Any]:
        """What all batches add up to, and the findings that came last."""
        names = self._watching.topics.names
        return {
            "job": "watch",
            "batches": self._progress.number + 1,
            "topics": {name: self._progress.topics.get(name, _nothing()) for name in names},
            "findings": self._progress.recent,
            "deleted": sorted(self._deleted),
        }

    def _read_new(self) -> tuple[DataFrame | None, Look, Sequence[Piece]]:
        """Rows of what is new, None where nothing is; and what was looked at for them. Where a topic is deleted
        meanwhile, what was read is dropped: another of its name may have been read in its place.
        """
        topics = self._watching.topics
        while True:
            look = look_at(topics)
            self._learn(look.ids)
            pieces = look.pieces(self._progress.places, self._watching.at_most)
            if not pieces:
                return None, look, pieces
            reads = replace(topics, names=tuple(sorted({piece.wanted.of.topic for piece in pieces})))
            planned = {name: look.ids[name] for name in reads.names}
            try:
                cells = self._read(pieces)
            except PySparkException:
                if ids_of(reads) == planned:
                    raise
            else:
                if ids_of(reads) == planned:
                    return cells, look, pieces

    def _learn(self, ids: Mapping[str, str]) -> None:
        """Which topics exist, and which are others than before."""
        known = self._progress.ids
        for name in self._watching.topics.names:
            if name not in ids:
                if name not in self._deleted:
                    self._deleted.add(name)
                    self._notices.append(
                        f"{name} was deleted: what was counted of it stays, and it is watched again if it is recreated"
                    )
                continue
            if ids[name] and known.get(name, ids[name]) != ids[name]:
                self._notices.append(f"{name} was recreated (its topic id is another): it is read from its beginning")
            elif name in self._deleted:
                self._notices.append(f"{name} is there again")
            self._deleted.discard(name)
        self._progress = self._progress.of_topics(ids)

    def _read(self, pieces: Sequence[Piece]) -> DataFrame:
        watching = self._watching
        work = reader(source_options(watching.topics.options), watching.bounds, watching.policies)
        return self._results.write_table(_ALL, over(self._spark, pieces, lambda piece: piece.wanted.size, work, DDL))

    def _written(self, cells: DataFrame, name: str) -> dict[str, list[dict[str, Any]]]:
        """Write the tables, and return what producers are known by."""
        sums = _added_up(cells)
        for what, columns in COLUMNS.items():
            rows = cells.where(f.col("what") == what).selectExpr(*(column.strip() for column in columns.split(",")))
            self._replace(what, rows, name, is_empty=not sums[what])
        return sums

    def _write_findings(self, found: list[dict[str, Any]], name: str) -> None:
        self._replace(FINDINGS, self._spark.createDataFrame(found, findings.DDL), name, is_empty=not found)

    def _replace(self, what: str, rows: DataFrame, name: str, *, is_empty: bool) -> None:
        """By nothing only where the batch may have been begun before, by this run or by one that was killed."""
        if self._is_again or not is_empty:
            dated = rows.withColumn("day", day_of(f.col("hour"))).withColumn("batch", f.lit(name))
            self._tables.replace(f"watch_{what}", dated, "batch", [name])


def _added_up(cells: DataFrame) -> dict[str, list[dict[str, Any]]]:
    """By topic, producer and what producers are known by: how many are `counted`, and the first and the last hour."""
    counted = (
        f.when(f.col("what") == HOURS, f.col("records"))
        .when(f.col("what") == VIOLATIONS, f.col("bad_records"))
        .when(f.col("what") == UNREADABLE, f.col("batches"))
        .otherwise(f.col("last_offset") - f.col("first_offset") + 1)
    )
    hours = (f.min("hour").alias("first_hour"), f.max("hour").alias("last_hour"))
    found: dict[str, list[dict[str, Any]]] = {what: [] for what in COLUMNS}
    for row in cells.groupBy("what", *_KNOWN_BY).agg(f.sum(counted).alias("counted"), *hours).collect():
        found[row.what].append(row.asDict())  # a Row looks through its names for each field
    return found


def _seen(sums: dict[str, list[dict[str, Any]]]) -> tuple[list[Seen], list[Distance]]:
    marks: dict[_Mark, Seen] = {}
    counts: dict[_Side, dict[int, int]] = {}
    hours: dict[_Side, int] = {}
    for row in sums[HOURS]:
        topic, producer_id = row["topic"], row["producer_id"]
        if row["damage"] != NO_DAMAGE:
            _mark(marks, (topic, producer_id, About.DAMAGE, row["damage"]), row)
        for side in (About.AHEAD, About.BEHIND):
            who = (topic, producer_id, side)
            its = counts.setdefault(who, {})
            hours[who] = max(hours.get(who, 0), row["last_hour"])
            if row["damage"] in _SOUND:
                step = row[f"{side}_beyond_ms"]
                its[step] = its.get(step, 0) + row["counted"]
    for row in sums[VIOLATIONS]:
        rule = f" by {row['rule']}" if row["rule"] is not None else ""
        what = f"{row['verdict']}: {row['reason']}{rule}"
        _mark(marks, (row["topic"], row["producer_id"], About.VIOLATION, what), row)
    return list(marks.values()), [Distance(*who, counts=its, last_hour=hours[who]) for who, its in counts.items()]


def _mark(marks: dict[_Mark, Seen], what: _Mark, row: dict[str, Any]) -> None:
    known = marks.get(what)
    first, last, records = row["first_hour"], row["last_hour"], row["counted"]
    if known is not None:
        first, last = min(first, known.first_hour), max(last, known.last_hour)
        records += known.records
    marks[what] = Seen(*what, records=records, first_hour=first, last_hour=last)


def _added(topics: dict[str, dict[str, Any]], sums: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(json.dumps(topics))
    for row in sums[HOURS]:
        topic, damage = found.setdefault(row["topic"], _nothing()), row["damage"]
        topic["records"] += row["counted"]
        if damage != NO_DAMAGE:
            topic["damage"][damage] = topic["damage"].get(damage, 0) + row["counted"]
    for row in sums[VIOLATIONS]:
        violations = found.setdefault(row["topic"], _nothing())["violations"]
        violations[row["reason"]] = violations.get(row["reason"], 0) + row["counted"]
    for what in (GONE, UNREADABLE):
        for row in sums[what]:
            topic = found.setdefault(row["topic"], _nothing())
            topic[what] = topic.get(what, 0) + row["counted"]  # an earlier release counted no unreadable ones
    return found


def _nothing() -> dict[str, Any]:
    return {"records": 0, "damage": {}, "violations": {}, "gone": 0, "unreadable": 0}
