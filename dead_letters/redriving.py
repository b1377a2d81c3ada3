"""Plans the redrive of letters, and writes each record and its mark once."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sluicegate.dead_letters.cluster import Cluster
from sluicegate.dead_letters.letter import Letter, ReadLetter
from sluicegate.dead_letters.marks import Mark, MarkState, ranges_of_offsets
from sluicegate.dead_letters.plan import PlannedRecord, Planner
from sluicegate.dead_letters.reading import read_records
from sluicegate.dead_letters.selection import LetterSelection

_AT_ONCE = 1000
_MOST_RECORDS = 10_000
_MOST_BYTES = 8 << 20


def decisions(
    cluster: Cluster, topic: str, selection: LetterSelection, planner: Planner, plan: str, read_letter: ReadLetter
) -> Iterator[PlannedRecord | str]:
    """Yield the decision about each selected letter, partition by partition and in offset order.

    Raises ClusterUnavailable.
    """
    consumer = cluster.consumer()
    try:
        for each in selection.ranges:
            letters: list[Letter | None] = []
            size = 0
            for record in read_records(consumer, topic, [each]):
                letter = read_letter(record)
                if letter is not None and not selection.takes(letter):
                    continue
                letters.append(letter)
                size += record.size
                if len(letters) >= _AT_ONCE or size >= _MOST_BYTES:
                    yield from planner.decide(letters, plan)
                    letters, size = [], 0
            yield from planner.decide(letters, plan)
    finally:
        consumer.close()


@dataclass(frozen=True, slots=True)
class Origin:
    """The properties that all marks of a run share: the dead-letter topic and its id, the plan, and the person."""

    topic: str
    topic_id: str
    plan: str
    actor: str


@dataclass(slots=True)
class Redriven:
    """The number of written records, and the number of rejected records per error code."""

    written: int = 0
    given_up: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Pace:
    """The limits of a run: records per second, and the number of rejections at which it stops. None is no limit."""

    records_per_second: float | None = None
    most_rejections: int | None = None

    @property
    def most_at_once(self) -> int:
        """Return the maximum number of records per transaction: one second's worth, and at most 10,000."""
        rate = self.records_per_second
        return _MOST_RECORDS if rate is None else max(1, min(_MOST_RECORDS, int(rate)))

    def is_over(self, result: Redriven) -> bool:
        """Return whether the run has reached its limit of rejections."""
        return self.most_rejections is not None and result.given_up.total() >= self.most_rejections


class LetterWriter(Protocol):
    """A writer of records and of the marks on their letters."""

    def write(self, records: Sequence[PlannedRecord], marks: Sequence[Mark]) -> str | None:
        """Write records and their marks. If a record is rejected, write no marks and return the error code."""


class Redrive:
    """Writes planned records and their marks, in steps of records from one partition.

    If a record is rejected, its step is divided into halves until the rejected record is on its own. That record is
    then marked as given up. `now_ms` is the clock. Every method raises Fenced and ClusterUnavailable.
    """

    def __init__(self, writer: LetterWriter, origin: Origin, pace: Pace, now_ms: Callable[[], int]) -> None:
        self._writer = writer
        self._origin = origin
        self._pace = pace
        self._now_ms = now_ms
        self._began = time.monotonic()
        self.result = Redriven()

    def run(self, planned: Iterator[PlannedRecord | str]) -> Redriven:
        """Write the records among the decisions. Other decisions are skipped; their letters get no marks."""
        pending: list[PlannedRecord] = []
        size = 0
        for record in planned:
            if isinstance(record, str):
                continue
            is_full = len(pending) >= self._pace.most_at_once or size + record.source.size > _MOST_BYTES
            if pending and (is_full or record.source.partition != pending[0].source.partition):
                self._write(pending)
                pending, size = [], 0
                if self._pace.is_over(self.result):
                    return self.result
            pending.append(record)
            size += record.source.size
        if pending:
            self._write(pending)
        return self.result

    def _write(self, records: Sequence[PlannedRecord]) -> None:
        """Write records in order."""
        if self._pace.is_over(self.result):
            return
        error = self._writer.write(records, [self._mark(records, MarkState.REDRIVEN, None)])
        if error is None:
            self.result.written += len(records)
            self._rest()
        elif len(records) == 1:
            self._writer.write((), [self._mark(records, MarkState.GIVEN_UP, error)])
            self.result.given_up[error] += 1
        else:
            half = len(records) // 2
            self._write(records[:half])
            self._write(records[half:])

    def _mark(self, records: Sequence[PlannedRecord], state: MarkState, reason: str | None) -> Mark:
        origin = self._origin
        ranges = ranges_of_offsets(record.source.offset for record in records)
        partition = records[0].source.partition
        now = self._now_ms()
        return Mark(origin.topic, origin.topic_id, partition, ranges, state, origin.plan, origin.actor, now, reason)

    def _rest(self) -> None:
        """Wait until the rate is within its limit."""
        rate = self._pace.records_per_second
        if rate is not None:
            time.sleep(max(0.0, self._began + self.result.written / rate - time.monotonic()))
