"""How far an extraction has come: after each batch a file that says so, with what all batches so far have written."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

from sluicegate.pipeline.jobs.extract.extractors import NO_TIME
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.results import Results

_FOLDER = "progress"


@dataclass(frozen=True, slots=True)
class Reached:
    """Of one partition: the offset behind the last one read, the highest event time (ms), and how many records were
    written and skipped; of all these, how many have a time that is `too_late` for Spark.
    """

    offset: int
    highest: int = NO_TIME
    records: int = 0
    skipped: int = 0
    too_late: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """After batch `number`, or before the first one (-1)."""

    number: int = -1
    of: Mapping[TopicPartition, Reached] = field(default_factory=dict)

    @property
    def is_none(self) -> bool:
        """Whether no batch has been written whole."""
        return self.number < 0

    def of_partition(self, partition: TopicPartition, first: int) -> Reached:
        """`first`: where one that is new begins."""
        return self.of.get(partition) or Reached(first)

    def next_ranges(self, there: Iterable[OffsetRange], at_most: int) -> list[OffsetRange]:
        """What the next batch reads of all that is there, dealt out by what each partition has left."""
        left = [OffsetRange(r.of, self.of_partition(r.of, r.start).offset, r.end) for r in there]
        left = [r for r in left if r.size > 0]
        total = sum(r.size for r in left)
        if total <= at_most:
            return left
        return [OffsetRange(r.of, r.start, min(r.end, r.start + -(-r.size * at_most // total))) for r in left]

    def after(self, done: Mapping[TopicPartition, Reached]) -> "Progress":
        """With the next batch, of which `done` is written; its counts are those of this batch."""
        found = dict(self.of)
        for partition, its in done.items():
            before = self.of_partition(partition, its.offset)
            highest = max(before.highest, its.highest)
            counts = (getattr(before, name) + getattr(its, name) for name in ("records", "skipped", "too_late"))
            found[partition] = Reached(its.offset, highest, *counts)
        return Progress(self.number + 1, found)

    def keep(self, results: Results) -> None:
        """From here a run that is started again goes on."""
        rows = [[p.topic, p.partition, *astuple(r)] for p, r in sorted(self.of.items())]
        results.write_text(f"{_FOLDER}/{self.number}.json", json.dumps(rows) + "\n")


def progress_in(results: Results) -> Progress:
    """Where an earlier run has ended."""
    numbers = [int(name.removesuffix(".json")) for name in results.names_in(_FOLDER) if name.endswith(".json")]
    if not numbers:
        return Progress()
    rows: list[list[Any]] = json.loads(results.read_text(f"{_FOLDER}/{max(numbers)}.json"))
    return Progress(max(numbers), {TopicPartition(t, p): Reached(*numbers) for t, p, *numbers in rows})
