"""Validates letters as a proxy would validate their records now, and finds timestamp corrections that would help."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from sluicegate.dead_letters.letter import Letter
from sluicegate.protocol.records.record_batch import RecordBatch
from sluicegate.protocol.records.writing import NewRecord
from sluicegate.validation.policy import TimeFix, TopicPolicy, ValidationLimits
from sluicegate.validation.produce.one_batch import PLACE, validate_batch
from sluicegate.validation.rules.rule import Client, Mode
from sluicegate.validation.validated_request import ValidatedRequest
from sluicegate.validation.verdict import TIMED, Finding

VALID = "valid"
_FIXES = (TimeFix.UNIT, TimeFix.CLAMP, TimeFix.NOW)
_ANYONE = Client("", "")
_AT_ONCE = 50
_MOST_BYTES = 1 << 20

PolicyOf = Callable[[str], TopicPolicy]
"""Returns the policy of a topic."""


TimeOf = Callable[[Letter], int]
"""Returns the timestamp (ms) with which a letter's record is validated and written."""


def own_time(letter: Letter) -> int:
    """Return the original record's timestamp, or the letter's own if the original is unknown."""
    return letter.record.timestamp if letter.timestamp is None else letter.timestamp


@dataclass(frozen=True, slots=True)
class LetterVerdict:
    """The verdict on a letter's record.

    - `is_accepted`: whether a proxy would forward the record.
    - `code`: `VALID`, or the reason of the violation, even if the violation is only observed or marked. `rules` are the
      violated rules, and `message` is the message for the client.
    - `timestamp`: the timestamp (ms) with which the record is accepted. A fix may have changed it.
    - `is_masked`: whether the proxy would mask sensitive fields.
    """

    is_accepted: bool
    code: str
    rules: tuple[str, ...]
    message: str
    timestamp: int
    is_masked: bool = False

    @property
    def is_valid(self) -> bool:
        """Return whether the record is accepted without a violation."""
        return self.is_accepted and self.code == VALID


class LetterValidator:
    """A validator of letters at the time `now_ms`, against the policies of their original topics."""

    def __init__(self, policy_of: PolicyOf, limits: ValidationLimits, now_ms: int, time_of: TimeOf) -> None:
        self._policy_of = policy_of
        self._limits = limits
        self._now_ms = now_ms
        self.time_of = time_of

    def verdict(self, letter: Letter, fix: TimeFix | None = None) -> LetterVerdict:
        """Return the verdict on a letter. `fix` replaces the policy's timestamp correction if it is given."""
        validated = self._validated([letter], fix)
        finding = _finding(validated)
        time = self.time_of(letter)
        if PLACE in validated.fixed:
            fixed = memoryview(validated.fixed[PLACE].records)
            time = RecordBatch(fixed, 0, len(fixed)).base_timestamp
        code, rules, message = (VALID, (), "") if finding is None else _described(finding)
        return LetterVerdict(PLACE not in validated.rejected, code, rules, message, time, PLACE in validated.masked)

    def verdicts(self, letters: Sequence[Letter], fix: TimeFix | None = None) -> list[LetterVerdict]:
        """Return the verdict on each letter.

        Validates consecutive letters of a topic as one batch. If the proxy would not forward that batch unchanged,
        validates its letters one by one.
        """
        found: list[LetterVerdict] = []
        for _, same in groupby(letters, _topic_of):
            for batch in _batches(same):
                if len(batch) > 1 and _is_clean(self._validated(batch, fix)):
                    found += [LetterVerdict(True, VALID, (), "", self.time_of(letter)) for letter in batch]
                else:
                    found += [self.verdict(letter, fix) for letter in batch]
        return found

    def _validated(self, letters: Sequence[Letter], fix: TimeFix | None) -> ValidatedRequest:
        topic = letters[0].topic
        policy = self._policy_of(topic)
        if fix is not None:
            mode = Mode.REJECT if policy.mode is Mode.QUARANTINE else policy.mode
            policy = replace(policy, fix=fix, mode=mode, dead_letters=None)
        records = [
            NewRecord(self.time_of(letter), letter.record.key, letter.record.value, letter.headers)
            for letter in letters
        ]
        return validate_batch(topic, records, policy, self._limits, self._now_ms, _ANYONE)

    def helpful_fixes(self, letter: Letter, verdict: LetterVerdict) -> list[TimeFix]:
        """Return the timestamp corrections that would make a rejected letter valid."""
        if verdict.is_accepted or verdict.code not in TIMED:
            return []
        return [fix for fix in _FIXES if self.verdict(letter, fix).is_valid]


def _topic_of(letter: Letter) -> str:
    return letter.topic


def _batches(letters: Iterator[Letter]) -> Iterator[list[Letter]]:
    """Yield letters in batches of bounded size."""
    batch: list[Letter] = []
    size = 0
    for letter in letters:
        batch.append(letter)
        size += letter.record.size
        if len(batch) >= _AT_ONCE or size >= _MOST_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _is_clean(validated: ValidatedRequest) -> bool:
    """Return whether the batch would be forwarded unchanged and without findings."""
    return not any(
        PLACE in changed
        for changed in (
            validated.rejected,
            validated.observed,
            validated.marked,
            validated.fixed,
            validated.masked,
        )
    )


def _finding(validated: ValidatedRequest) -> Finding | None:
    if PLACE in validated.rejected:
        return validated.rejected[PLACE]
    found: Sequence[Finding] = validated.observed.get(PLACE, ())
    if PLACE in validated.marked:
        found = (*found, *validated.marked[PLACE].findings)
    return found[0] if found else None


def _described(finding: Finding) -> tuple[str, tuple[str, ...], str]:
    rules = tuple(name for name, _ in finding.rules)
    return finding.reason.value, rules, finding.message or finding.reason.text
