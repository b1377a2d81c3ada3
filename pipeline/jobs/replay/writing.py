"""Writes a partition's dead letters to their topics exactly once, as a task of a replay."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, encode_headers
from sluicegate.pipeline.jobs.replay.decisions import RemainingLetter, ReplayDecider, Validation
from sluicegate.pipeline.jobs.replay.letters import LetterBatch, LetterSource
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.fetching import DataLoss
from sluicegate.pipeline.writing.progress import WriteProgress
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic, Writing
from sluicegate.pipeline.writing.transactions import Transactions, transactions


class Headers(StrEnum):
    """The headers of a record that is written back: only its own, or also the headers that the proxy added."""

    OWN = "own"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class ReplayPartition:
    """The result of listing a range: the number of `records` and the offsets of the `remaining` records.

    `plan_id` is the id of this listing.
    """

    plan_id: str
    source: OffsetRange
    records: int
    remaining: frozenset[int]


@dataclass(frozen=True, slots=True)
class ReplayedPartition:
    """The number of records that one task wrote to one partition. `last` is the offset of the last record."""

    to: str
    to_partition: int
    records: int
    last: int


def write_back(
    plan: ReplayPartition, validation: Validation, headers: Headers, letters: LetterSource, writing: Writing
) -> list[ReplayedPartition]:
    """Write the records. Committed records stay after an error.

    Raises CannotWriteTopic, FunctionFails, CannotBeValidated and the errors of reading.
    """
    of = plan.source.of
    try:
        with transactions(of, writing) as target:
            writer = _Writer(plan, target, ReplayDecider(validation), headers, _before(plan, target))
            if writer.rest.size > 0:
                writer.write(letters.within(writer.rest))
    except DataLoss as loss:
        raise CannotWriteTopic(
            f"{loss} since they were listed (retention?); written records stay. Start again"
        ) from loss
    return [ReplayedPartition(p.topic, p.partition, count, target.ends[p]) for p, count in writer.written.items()]


def _before(plan: ReplayPartition, target: Transactions) -> WriteProgress:
    """Return the progress of this task's earlier attempt, because Spark repeats failed tasks."""
    found = target.before()
    if found is None or found.reached <= plan.source.start:
        return WriteProgress(plan.source.start, 0, plan.plan_id)
    if found.plan_id != plan.plan_id:
        raise CannotWriteTopic(
            f"{plan.source.of}: another replay has continued in the meantime; start again when it has ended"
        )
    return found


class _Writer:
    """Writes records in transactions. `rest` is the range to write. `written` counts the records by partition."""

    def __init__(
        self,
        plan: ReplayPartition,
        target: Transactions,
        decider: ReplayDecider,
        headers: Headers,
        before: WriteProgress,
    ) -> None:
        self._plan = plan
        self._target = target
        self._decider = decider
        self._headers = headers
        self._read = before.records
        self.rest = OffsetRange(plan.source.of, before.reached, plan.source.end)
        self.written: dict[TopicPartition, int] = {}

    def write(self, found: Iterator[LetterBatch]) -> None:
        """Write all records that are not `remaining`, then commit the end of the range."""
        self._target.begin()
        for some in found:
            for offset, letter in some.records:
                if offset not in self._plan.remaining:
                    self._write(offset, letter)
            self._read += len(some.records)
            if self._target.add(len(some.records), some.size):
                self._target.commit(self._progress(some.records[-1][0] + 1))
                self._target.begin()
        if self._read != self._plan.records:
            raise CannotWriteTopic(
                f"{self._plan.source.of}: {self._plan.records:,} records were listed, and {self._read:,} were read now "
                f"(deleted?); committed records stay, and the rest is not written. Start again"
            )
        self._target.commit(self._progress(self._plan.source.end))

    def _write(self, offset: int, letter: DeadLetter | RemainingLetter) -> None:
        if isinstance(letter, RemainingLetter):
            raise self._is_bad_now(offset, letter.message)
        decided = self._decider.decide(letter)
        if isinstance(decided, RemainingLetter):
            raise self._is_bad_now(offset, decided.message)
        record = decided.record
        to = TopicPartition(letter.topic, letter.partition)
        proxy_headers = letter.proxy_headers if self._headers is Headers.ALL else ()
        self._target.write(
            to, record.key, record.value, record.timestamp, encode_headers((*record.headers, *proxy_headers))
        )
        self.written[to] = self.written.get(to, 0) + 1

    def _is_bad_now(self, offset: int, message: str) -> CannotWriteTopic:
        return CannotWriteTopic(
            f"{self._plan.source.of} offset {offset}: the record was valid when it was listed, and is no longer: "
            f"{message}. Committed records stay, and the rest is not written. Start again"
        )

    def _progress(self, reached: int) -> WriteProgress:
        return WriteProgress(reached, self._read, self._plan.plan_id)
