"""Plans what happens to each selected letter. A plan is applied only if its digest is that of the printed plan."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

from sluicegate.dead_letters.header_values import number_of
from sluicegate.dead_letters.letter import Headers, Letter, StoredRecord
from sluicegate.dead_letters.marks import Marks, MarkState
from sluicegate.dead_letters.repairs import LetterRepair, RepairFailed, repaired
from sluicegate.dead_letters.verdicts import LetterValidator, LetterVerdict
from sluicegate.dead_letters.writable import why_unwritable
from sluicegate.validation.policy import TimeFix

ATTEMPTS_HEADER = b"sluicegate.redrive.attempts"
"""The header that counts how often a record was redriven. The count prevents endless loops."""

BY_KEY = -1
"""Selects the partition from the record's key."""
_DIGEST_CHARACTERS = 16


class RemainsBecause(StrEnum):
    """Reasons why a letter is not redriven, in addition to obstacles and the reasons of verdicts."""

    NO_LETTER = "not_a_dead_letter"
    REDRIVEN = "already_redriven"
    GIVEN_UP = "given_up"
    ATTEMPTS = "attempts_exceeded"
    NO_TOPIC = "no_such_topic"
    NO_PARTITION = "no_such_partition"
    SENSITIVE = "sensitive_fields"
    UNWRITABLE = "unwritable_record"
    REPAIR_FAILED = "repair_failed"
    LEFT_OUT = "left_out_by_repair"


class PlannedRecord(NamedTuple):
    """A record to write.

    `source` is the letter's record with the key and the value to write. `partition` is `BY_KEY` if the key selects it.
    `is_corrected` is whether the timestamp was corrected. `unrepaired` is the letter before repairs, if any repair
    changed it.
    """

    source: StoredRecord
    topic: str
    partition: int
    timestamp: int
    headers: Headers
    is_corrected: bool
    unrepaired: Letter | None = None


@dataclass(frozen=True, slots=True)
class Planner:
    """Decides what happens to letters.

    - `partitions`: the number of partitions of each topic to which letters may be redriven.
    - `fix`: the timestamp correction, or None for the policy's. `most_attempts`: the maximum number of attempts.
    - `keeps_partition`: whether a record goes to its original partition. If not, its key selects the partition.
    - `repairs`: changes to the records before validation.
    """

    validator: LetterValidator
    marks: Marks
    partitions: Mapping[str, int]
    fix: TimeFix | None
    most_attempts: int
    keeps_partition: bool
    repairs: Sequence[LetterRepair] = ()

    def decide(self, letters: Sequence[Letter | None], plan: str) -> list[PlannedRecord | str]:
        """Return for each letter the record to write, or the reason code if the letter stays in the dead-letter topic.

        A record that is not a letter is None. Marks by the plan with the digest `plan` are ignored, so the digest of a
        partly applied plan stays the same.
        """
        prepared = [self._prepared(letter, plan) for letter in letters]
        candidates = [each for each in prepared if isinstance(each, _Candidate)]
        verdicts = iter(self.validator.verdicts([each.changed for each in candidates], self.fix))
        return [self._written(each, next(verdicts)) if isinstance(each, _Candidate) else each for each in prepared]

    def _prepared(self, letter: Letter | None, plan: str) -> "_Candidate | str":
        """Return a repaired letter, or a reason code if the letter cannot be redriven whatever its verdict is."""
        if letter is None:
            return RemainsBecause.NO_LETTER
        state = self.marks.state_of(letter.record.partition, letter.record.offset, plan)
        if state is not None:
            return RemainsBecause.REDRIVEN if state is MarkState.REDRIVEN else RemainsBecause.GIVEN_UP
        if letter.obstacle is not None:
            return letter.obstacle.value
        attempts = number_of(dict(letter.headers), ATTEMPTS_HEADER) or 0
        if attempts >= self.most_attempts:
            return RemainsBecause.ATTEMPTS
        partition = self._partition_of(letter)
        if isinstance(partition, RemainsBecause):
            return partition
        try:
            changed = repaired(letter, self.repairs)
        except RepairFailed as error:
            return f"{RemainsBecause.REPAIR_FAILED}: {error}"
        if changed is None:
            return RemainsBecause.LEFT_OUT
        return _Candidate(letter, changed, partition, attempts)

    def _written(self, candidate: "_Candidate", verdict: LetterVerdict) -> PlannedRecord | str:
        letter, changed, partition, attempts = candidate
        if not verdict.is_valid:
            return f"rule {', '.join(verdict.rules)}" if verdict.rules else verdict.code
        if verdict.is_masked:
            return RemainsBecause.SENSITIVE
        headers = tuple([each for each in changed.headers if each[0] != ATTEMPTS_HEADER])
        if why_unwritable(verdict.timestamp, headers) is not None:
            return RemainsBecause.UNWRITABLE
        counted = (*headers, (ATTEMPTS_HEADER, str(attempts + 1).encode()))
        is_corrected = verdict.timestamp != self.validator.time_of(changed)
        unrepaired = None if changed is letter else letter
        return PlannedRecord(
            changed.record, letter.topic, partition, verdict.timestamp, counted, is_corrected, unrepaired
        )

    def _partition_of(self, letter: Letter) -> int | RemainsBecause:
        partitions = self.partitions.get(letter.topic)
        if partitions is None or letter.topic == letter.record.topic:
            return RemainsBecause.NO_TOPIC
        if not self.keeps_partition:
            return BY_KEY
        if letter.partition is None or not 0 <= letter.partition < partitions:
            return RemainsBecause.NO_PARTITION
        return letter.partition


class _Candidate(NamedTuple):
    """A letter that is redriven if `changed`, its record after repairs, is valid."""

    letter: Letter
    changed: Letter
    partition: int
    attempts: int


class PlanSummary:
    """Counts of a plan's decisions, and the plan's digest.

    `terms` is what the plan depends on in addition to the letters. The digest does not depend on the current time: it
    covers whether a timestamp is corrected, but not the corrected timestamp. `repaired` is the number of records that
    repairs changed, and `example` is the first of them.
    """

    def __init__(self, terms: str) -> None:
        self.targets: Counter[str] = Counter()
        self.repaired = 0
        self.example: PlannedRecord | None = None
        self.remaining: Counter[str] = Counter()
        self._hash = sha256(terms.encode())

    def add(self, decision: PlannedRecord | str) -> None:
        """Count the decision about the next letter."""
        if isinstance(decision, str):
            self.remaining[str(decision)] += 1
            return
        self.targets[decision.topic] += 1
        source = decision.source
        place = (source.partition, source.offset, decision.topic, decision.partition, decision.is_corrected)
        self._hash.update(repr((place, decision.headers)).encode())
        if decision.unrepaired is not None:
            self.repaired += 1
            self.example = self.example or decision
            self._hash.update(repr((source.key, source.value)).encode())

    @property
    def count(self) -> int:
        """Return the number of records to write."""
        return self.targets.total()

    @property
    def digest(self) -> str:
        """Return the digest."""
        return self._hash.hexdigest()[:_DIGEST_CHARACTERS]
