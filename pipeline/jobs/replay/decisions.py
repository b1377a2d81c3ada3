"""What becomes of a dead letter: it goes back, corrected or as it is, or it is left where it is, and why."""

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


class Why(StrEnum):
    """Why one is left, beside the reasons for which the proxy rejects."""

    NO_DEAD_LETTER = "no dead letter of the proxy's"
    WHOLE_BATCH = "its batch was bad as a whole"
    GONE = "it is not there any more"
    ANOTHER = "another record than the one that was validated"
    NO_PARTITION = "there is no such partition"
    BY_FUNCTION = "the function leaves it"


@dataclass(frozen=True, slots=True)
class Back:
    """It goes back as `record`, which was `corrected` where it is not what its producer wrote."""

    record: Record
    corrected: bool


@dataclass(frozen=True, slots=True)
class Left:
    """It stays. `why`: a word for its kind; `told`: a sentence, with nothing of what it holds."""

    why: str
    told: str


@dataclass(frozen=True, slots=True)
class Validation:
    """What dead letters are corrected and validated by. `partitions`: how many a topic has, for those that are there;
    `by`: the name of the user's function, if there is one; `now_ms`: the moment that times are validated by.
    """

    policies: Policies
    partitions: Mapping[str, int]
    by: str | None
    now_ms: int


class Decider:
    """For one partition of a dead-letter topic, whose records come in their order."""

    def __init__(self, validation: Validation) -> None:
        self._asked = validation
        self._rulebook = validation.policies.rulebook()
        self._validates: dict[TopicPartition, PartitionValidator] = {}

    def decide(self, letter: DeadLetter) -> Back | Left:
        """Raises FunctionFails and CannotBeValidated."""
        partitions = self._asked.partitions.get(letter.topic)
        if partitions is None:
            return Left(Why.NO_PARTITION, f"there is no topic {letter.topic}, or it is read itself")
        if not 0 <= letter.partition < partitions:
            return Left(Why.NO_PARTITION, f"{letter.topic} has {partitions} partitions, and no {letter.partition}")
        record: Record | None = letter.record
        if self._asked.by is not None:
            record = corrected_by(self._asked.by, letter)
            if record is None:
                return Left(Why.BY_FUNCTION, f"{self._asked.by} leaves it")
        assert record is not None
        found = self._validated(letter, record)
        return found if isinstance(found, Left) else Back(found, found != letter.record)

    def _validated(self, letter: DeadLetter, record: Record) -> Record | Left:
        """As it would be forwarded by the proxy."""
        to = TopicPartition(letter.topic, letter.partition)
        if to not in self._validates:
            self._validates[to] = PartitionValidator(to, self._rulebook, self._asked.policies.limits)
        now_ms = self._asked.now_ms
        try:
            validated = self._validates[to].audit(_batch_of(record, letter.offset), now_ms)
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
    told = diagnosis_of(bad, now_ms)
    return Left(why, f"{bad.timestamp} {told}" if bad.reason in TIMED else told)
