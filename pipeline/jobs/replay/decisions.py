"""Decides whether a dead letter is written back, corrected or unchanged, or left, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from sluicegate.pipeline.jobs.audit.findings import diagnosis_of
from sluicegate.pipeline.jobs.audit.partition_validator import PLACE, CannotBeValidated, PartitionValidator
from sluicegate.pipeline.jobs.audit.policies import Policies
from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, Record, encoded
from sluicegate.pipeline.jobs.replay.function import corrected_by
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.protocol.records.record_batch import RecordBatch
from sluicegate.protocol.records.writing import NewRecord, write_batch
from sluicegate.validation.verdict import TIMED, Rejected


class LeftReason(StrEnum):
    """Reasons for leaving a dead letter, besides those for which the proxy rejects."""

    NO_DEAD_LETTER = "not a dead letter of the proxy"
    WHOLE_BATCH = "the whole batch was bad"
    GONE = "no longer stored"
    ANOTHER = "not the record that was validated"
    NO_PARTITION = "no such partition"
    BY_FUNCTION = "left by the function"


@dataclass(frozen=True, slots=True)
class Back:
    """It is written back as `record`; `corrected` if it differs from what its producer wrote."""

    record: Record
    corrected: bool


@dataclass(frozen=True, slots=True)
class Left:
    """It is left. `why`: the reason's kind. `message`: a sentence without record contents."""

    why: str
    message: str


@dataclass(frozen=True, slots=True)
class Validation:
    """How dead letters are corrected and validated. `partitions`: number of partitions of each existing topic. `by`:
    name of the user's function, if any. `now_ms`: the moment as of which times are validated.
    """

    policies: Policies
    partitions: Mapping[str, int]
    by: str | None
    now_ms: int


class Decider:
    """Decides about the records of one partition of a dead-letter topic, in order."""

    def __init__(self, validation: Validation) -> None:
        self._asked = validation
        self._rulebook = validation.policies.rulebook()
        self._validators: dict[TopicPartition, PartitionValidator] = {}

    def decide(self, letter: DeadLetter) -> Back | Left:
        """Return the decision. Raises FunctionFails and CannotBeValidated."""
        partitions = self._asked.partitions.get(letter.topic)
        if partitions is None:
            return Left(
                LeftReason.NO_PARTITION, f"the topic {letter.topic} does not exist or is a source of this replay"
            )
        if not 0 <= letter.partition < partitions:
            return Left(
                LeftReason.NO_PARTITION,
                f"{letter.topic} has {partitions} partitions, so {letter.partition} does not exist",
            )
        record: Record | None = letter.record
        if self._asked.by is not None:
            record = corrected_by(self._asked.by, letter)
            if record is None:
                return Left(LeftReason.BY_FUNCTION, f"{self._asked.by} returned None")
        assert record is not None
        found = self._validated(letter, record)
        return found if isinstance(found, Left) else Back(found, found != letter.record)

    def _validated(self, letter: DeadLetter, record: Record) -> Record | Left:
        """Return the record as the proxy would forward it."""
        to = TopicPartition(letter.topic, letter.partition)
        if to not in self._validators:
            self._validators[to] = PartitionValidator(to, self._rulebook, self._asked.policies.limits)
        now_ms = self._asked.now_ms
        try:
            validated = self._validators[to].validate(_batch_of(record, letter.offset), now_ms)
        except CannotBeValidated as error:
            raise CannotBeValidated(f"{letter.place}: {error}") from error
        if PLACE in validated.rejected:
            return _left(validated.rejected[PLACE], now_ms)
        if PLACE in validated.fixed:
            fixed = memoryview(validated.fixed[PLACE].records)
            return replace(record, timestamp=RecordBatch(fixed, 0, len(fixed)).max_timestamp)
        return record


def _batch_of(record: Record, offset: int) -> StoredBatch:
    new = NewRecord(record.timestamp, record.key, record.value, encoded(record.headers))
    frame = memoryview(write_batch([new]))
    return StoredBatch(frame, 0, len(frame), offset, offset, RecordBatch(frame, 0, len(frame)))


def _left(rejected: Rejected, now_ms: int) -> Left:
    rules = [name for name, _ in rejected.rules]
    why = f"rule {', '.join(rules)}" if rules else rejected.reason.value
    if not rejected.bad_records:
        return Left(why, rejected.message or rejected.reason.value)
    bad = rejected.bad_records[0]
    message = diagnosis_of(bad, now_ms)
    return Left(why, f"{bad.timestamp} {message}" if bad.reason in TIMED else message)
