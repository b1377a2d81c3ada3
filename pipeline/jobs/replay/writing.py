"""One task of a replay: the dead letters of a partition, to where they belong, exactly once."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sluicegate.pipeline.jobs.repair.progress import Progress
from sluicegate.pipeline.jobs.repair.record_writers import CannotWrite, Writing
from sluicegate.pipeline.jobs.repair.transactions import Transactions, transactions
from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, encoded
from sluicegate.pipeline.jobs.replay.decisions import Decider, Left, Validation
from sluicegate.pipeline.jobs.replay.letters import Letters, Some
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.fetching import DataLoss


class Headers(StrEnum):
    """What a record carries that goes back: its own headers, or those that the proxy gave it behind them too."""

    OWN = "own"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """A range of a dead-letter partition as it was listed: how many `records` it has, the offsets of those that are
    `left` where they are, and whether some of the others are not what librdkafka writes. `plan_id`: of this listing.
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
    plan: PartitionPlan, validation: Validation, headers: Headers, letters: Letters, writing: Writing
) -> list[Written]:
    """Raises CannotWrite, FunctionFails, CannotBeValidated and what reading raises; what is committed stays."""
    of = plan.source.of
    try:
        with transactions(of, writing) as target:
            writer = _Writer(plan, target, Decider(validation), headers, _before(plan, target))
            if writer.rest.size > 0:
                writer.write(letters.within(writer.rest))
    except DataLoss as loss:
        raise CannotWrite(f"{loss} since they were listed (retention?); what is written stays. Start again") from loss
    return [Written(p.topic, p.partition, count, target.ends[p]) for p, count in writer.written.items()]


def _before(plan: PartitionPlan, target: Transactions) -> Progress:
    """What an earlier try of the same task has done: Spark tries again what was lost."""
    found = target.before()
    if found is None or found.reached <= plan.source.start:
        return Progress(plan.source.start, 0, plan.plan_id)
    if found.plan_id != plan.plan_id:
        raise CannotWrite(f"{plan.source.of}: another replay has gone on meanwhile; start again when it has ended")
    return found


class _Writer:
    """Writes in transactions. `rest`: what is to be written; `written`: records by partition."""

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

    def write(self, found: Iterator[Some]) -> None:
        """All that goes back, and that the range is done."""
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
                f"{self._plan.source.of}: {self._plan.records:,} records were listed, and {self._read:,} came when "
                "read again (were some deleted?); what is committed stays, the rest is not written. Start again"
            )
        self._target.commit(self._progress(self._plan.source.end))

    def _write(self, offset: int, letter: DeadLetter | Left) -> None:
        if isinstance(letter, Left):
            raise self._is_bad_now(offset, letter.told)
        decided = self._decider.decide(letter)
        if isinstance(decided, Left):
            raise self._is_bad_now(offset, decided.told)
        record = decided.record
        to = TopicPartition(letter.topic, letter.partition)
        told = letter.told if self._headers is Headers.ALL else ()
        self._target.write(to, record.key, record.value, record.timestamp, encoded((*record.headers, *told)))
        self.written[to] = self.written.get(to, 0) + 1

    def _is_bad_now(self, offset: int, told: str) -> CannotWrite:
        return CannotWrite(
            f"{self._plan.source.of} offset {offset}: it was good when it was listed, and is not now: {told}. What is "
            "committed stays, the rest is not written. Start again"
        )

    def _progress(self, reached: int) -> Progress:
        return Progress(reached, self._read, self._plan.plan_id)
