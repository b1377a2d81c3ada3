"""A task of a replay: writes the dead letters of a partition to their topics exactly once."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, encoded
from sluicegate.pipeline.jobs.replay.decisions import Decider, Left, Validation
from sluicegate.pipeline.jobs.replay.letters import LetterBatch, LetterSource
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.fetching import DataLoss
from sluicegate.pipeline.writing.progress import Progress
from sluicegate.pipeline.writing.record_writers import CannotWrite, Writing
from sluicegate.pipeline.writing.transactions import Transactions, transactions


class Headers(StrEnum):
    """Headers of a record that is written back: its own, or also those that the proxy added after them."""

    OWN = "own"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """The listing of a range: the number of `records`, the offsets of those that are `left`, and whether others cannot
    be written by librdkafka. `plan_id`: id of this listing.
    """

    plan_id: str
    source: OffsetRange
    records: int
    left: frozenset[int]
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What one task wrote to one partition; `last`: its last offset there."""

    to: str
    to_partition: int
    records: int
    last: int


def write_back(
    plan: PartitionPlan, validation: Validation, headers: Headers, letters: LetterSource, writing: Writing
) -> list[Written]:
    """Write the records. Raises CannotWrite, FunctionFails, CannotBeValidated and what reading raises; committed
    records stay.
    """
    of = plan.source.of
    try:
        with transactions(of, writing) as target:
            writer = _Writer(plan, target, Decider(validation), headers, _before(plan, target))
            if writer.rest.size > 0:
                writer.write(letters.within(writer.rest))
    except DataLoss as loss:
        raise CannotWrite(f"{loss} since they were listed (retention?); written records stay. Start again") from loss
    return [Written(p.topic, p.partition, count, target.ends[p]) for p, count in writer.written.items()]


def _before(plan: PartitionPlan, target: Transactions) -> Progress:
    """Return the progress of an earlier attempt of this task: Spark repeats failed tasks."""
    found = target.before()
    if found is None or found.reached <= plan.source.start:
        return Progress(plan.source.start, 0, plan.plan_id)
    if found.plan_id != plan.plan_id:
        raise CannotWrite(f"{plan.source.of}: another replay continued meanwhile; start again when it has ended")
    return found


class _Writer:
    """Writes in transactions. `rest`: range to write. `written`: records by partition."""

    def __init__(
        self, plan: PartitionPlan, target: Transactions, decider: Decider, headers: Headers, before: Progress
    ) -> None:
        self._plan = plan
        self._target = target
        self._decider = decider
        self._headers = headers
        self._read = before.records
        self.rest = OffsetRange(plan.source.of, before.reached, plan.source.end)
        self.written: dict[TopicPartition, int] = {}

    def write(self, found: Iterator[LetterBatch]) -> None:
        """Write all records that are not left, and commit the end of the range."""
        self._target.begin()
        for some in found:
            for offset, letter in some.records:
                if offset not in self._plan.left:
                    self._write(offset, letter)
            self._read += len(some.records)
            if self._target.add(len(some.records), some.size):
                self._target.commit(self._progress(some.records[-1][0] + 1))
                self._target.begin()
        if self._read != self._plan.records:
            raise CannotWrite(
                f"{self._plan.source.of}: {self._plan.records:,} records were listed, and {self._read:,} were read "
                "now (deleted?); committed records stay, the rest is not written. Start again"
            )
        self._target.commit(self._progress(self._plan.source.end))

    def _write(self, offset: int, letter: DeadLetter | Left) -> None:
        if isinstance(letter, Left):
            raise self._is_bad_now(offset, letter.message)
        decided = self._decider.decide(letter)
        if isinstance(decided, Left):
            raise self._is_bad_now(offset, decided.message)
        record = decided.record
        to = TopicPartition(letter.topic, letter.partition)
        proxy_headers = letter.proxy_headers if self._headers is Headers.ALL else ()
        self._target.write(to, record.key, record.value, record.timestamp, encoded((*record.headers, *proxy_headers)))
        self.written[to] = self.written.get(to, 0) + 1

    def _is_bad_now(self, offset: int, message: str) -> CannotWrite:
        return CannotWrite(
            f"{self._plan.source.of} offset {offset}: the record was good when it was listed, and is not now: "
            f"{message}. Committed records stay, the rest is not written. Start again"
        )

    def _progress(self, reached: int) -> Progress:
        return Progress(reached, self._read, self._plan.plan_id)
