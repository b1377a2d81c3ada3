"""Keeps the progress of an extraction: a file after each batch, with the counts of all batches so far."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from sluicegate.pipeline.jobs.extract.extractors import NO_TIME
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.runs.errors import EarlierBuild
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.losses import LogStates, Position, surviving_ranges

_FOLDER = "progress"


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """The progress in one partition.

    It consists of the next offset to read, the highest event time (ms), the numbers of written and skipped records, and
    the number of all records whose time is `too_late` for Spark.
    """

    offset: int
    highest: int = NO_TIME
    records: int = 0
    skipped: int = 0
    too_late: int = 0


@dataclass(frozen=True, slots=True)
class ExtractProgress:
    """The progress after batch `number`, which is -1 before the first batch.

    `ids` maps the topics' names to the topic ids for which the offsets are valid. `missing` contains a sentence for
    each partition that lost records before they were read.
    """

    number: int = -1
    of: Mapping[TopicPartition, PartitionProgress] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def is_none(self) -> bool:
        """Return whether no batch is complete yet."""
        return self.number < 0

    def progress_of(self, partition: TopicPartition, first: int) -> PartitionProgress:
        """Return the partition's progress. `first` is the offset at which a new partition starts."""
        return self.of.get(partition) or PartitionProgress(first)

    def resumed(self, now: LogStates) -> tuple["ExtractProgress", list[str]]:
        """Return the progress that continues with the existing records.

        Also return a sentence for each partition that lost records.
        """
        known = Position({of: its.offset for of, its in self.of.items()}, self.ids)
        ends = Position({of: now.ends[of] for of in self.of if of in now.ends}, now.ids)
        ranges, found = surviving_ranges(known, ends, now)
        lost = [sentence for sentence in found if sentence not in self.missing]
        starts = {**ends.offsets, **{each.of: each.start for each in ranges}}
        reached = {of: replace(its, offset=starts.get(of, its.offset)) for of, its in self.of.items()}
        return replace(self, of=reached, ids={**self.ids, **now.ids}, missing=(*self.missing, *lost)), lost

    def next_ranges(self, there: Iterable[OffsetRange], at_most: int) -> list[OffsetRange]:
        """Return the next batch's ranges. Each partition gets a share in proportion to its unread records."""
        left = [OffsetRange(r.of, self.progress_of(r.of, r.start).offset, r.end) for r in there]
        left = [r for r in left if r.size > 0]
        total = sum(r.size for r in left)
        if total <= at_most:
            return left
        return [OffsetRange(r.of, r.start, min(r.end, r.start + -(-r.size * at_most // total))) for r in left]

    def after(self, done: Mapping[TopicPartition, PartitionProgress]) -> "ExtractProgress":
        """Return the progress after the next batch; `done` contains that batch's counts."""
        found = dict(self.of)
        for partition, its in done.items():
            before = self.progress_of(partition, its.offset)
            highest = max(before.highest, its.highest)
            counts = (getattr(before, name) + getattr(its, name) for name in ("records", "skipped", "too_late"))
            found[partition] = PartitionProgress(its.offset, highest, *counts)
        return replace(self, number=self.number + 1, of=found)

    def keep(self, results: Results) -> None:
        """Write the progress, from which a restarted run continues."""
        rows = [[p.topic, p.partition, *astuple(r)] for p, r in sorted(self.of.items())]
        content = {"partitions": rows, "ids": self.ids, "missing": self.missing}
        results.write_text(f"{_FOLDER}/{self.number}.json", json.dumps(content) + "\n")


def progress_in(results: Results) -> ExtractProgress:
    """Return the progress of earlier runs. Raises EarlierBuild."""
    numbers = [int(name.removesuffix(".json")) for name in results.names_in(_FOLDER) if name.endswith(".json")]
    if not numbers:
        return ExtractProgress()
    name = f"{_FOLDER}/{max(numbers)}.json"
    content: Any = json.loads(results.read_text(name))
    if isinstance(content, list):  # written by an earlier release, which kept no ids
        content = {"partitions": content, "ids": {}, "missing": []}
    if "missing" not in content:
        raise EarlierBuild(results.path(name))
    reached = {TopicPartition(t, p): PartitionProgress(*numbers) for t, p, *numbers in content["partitions"]}
    return ExtractProgress(max(numbers), reached, content["ids"], tuple(content["missing"]))
