"""What becomes of a dead letter: it goes back, corrected or as it is, or it is left where it is, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from sluicegate.pipeline.jobs.judge.findings import diagnosis_of
from sluicegate.pipeline.jobs.judge.judging import PLACE, CannotBeJudged, PartitionJudge
from sluicegate.pipeline.jobs.judge.policies import Policies
from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, Record, encoded
from sluicegate.pipeline.jobs.replay.function import corrected_by
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.protocol.records.record_batch import RecordBatch
from sluicegate.protocol.records.writing import NewRecord, write_batch
from sluicegate.validation.verdict import TIMED, Refused


class Why(StrEnum):
    """Why one is left, beside the reasons for which the proxy refuses."""

    NO_DEAD_LETTER = "no dead letter of the proxy's"
    WHOLE_BATCH = "its batch was bad as a whole"
    GONE = "it is not there any more"
    ANOTHER = "another record than the one that was judged"
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
class Judgement:
    """What dead letters are corrected and judged by. `partitions`: how many a topic has, for those that are there;
    `by`: the name of the user's function, if there is one; `now_ms`: the moment that times are judged by.
    """

    policies: Policies
    partitions: Mapping[str, int]
    by: str | None
    now_ms: int


class Decider:
    """For one partition of a dead-letter topic, whose records come in their order."""

    def __init__(self, judgement: Judgement) -> None:
        self._asked = judgement
        self._rulebook = judgement.policies.rulebook()
        self._judges: dict[TopicPartition, PartitionJudge] = {}

    def decide(self, letter: DeadLetter) -> Back | Left:
        """Raises FunctionFails and CannotBeJudged."""
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
        found = self._judged(letter, record)
        return found if isinstance(found, Left) else Back(found, found != letter.record)

    def _judged(self, letter: DeadLetter, record: Record) -> Record | Left:
        """As it would be forwarded by the proxy."""
        to = TopicPartition(letter.topic, letter.partition)
        if to not in self._judges:
            self._judges[to] = PartitionJudge(to, self._rulebook, self._asked.policies.limits)
        now_ms = self._asked.now_ms
        try:
            judged = self._judges[to].judge(_batch_of(record, letter.offset), now_ms)
        except CannotBeJudged as error:
            raise CannotBeJudged(f"{letter.place}: {error}") from error
        if PLACE in judged.refused:
            return _left(judged.refused[PLACE], now_ms)
        if PLACE in judged.fixed:
            fixed = memoryview(judged.fixed[PLACE].records)
            return replace(record, timestamp=RecordBatch(fixed, 0, len(fixed)).max_timestamp)
        return record


def _batch_of(record: Record, offset: int) -> StoredBatch:
    new = NewRecord(record.timestamp, record.key, record.value, encoded(record.headers))
    frame = memoryview(write_batch([new]))
    return StoredBatch(frame, 0, len(frame), offset, offset, RecordBatch(frame, 0, len(frame)))


def _left(refused: Refused, now_ms: int) -> Left:
    rules = [name for name, _ in refused.rules]
    why = f"rule {', '.join(rules)}" if rules else refused.reason.value
    if not refused.bad_records:
        return Left(why, refused.message or refused.reason.value)
    bad = refused.bad_records[0]
    told = diagnosis_of(bad, now_ms)
    return Left(why, f"{bad.timestamp} {told}" if bad.reason in TIMED else told)
