"""Decides for a dead letter whether it is written back, corrected or unchanged, or remains, with the reason.

The user's function, named as `module:function`, corrects dead letters. It receives a DeadLetter and returns the record
to write, or None to leave the letter in its topic:

    def in_euros(letter: DeadLetter) -> ReplayRecord | None:
        return replace(letter.record, value=...)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from importlib import import_module

from sluicegate.dead_letters.writable import why_unwritable
from sluicegate.pipeline.jobs.audit.findings import diagnosis_of
from sluicegate.pipeline.jobs.audit.partition_validator import PLACE, CannotBeValidated, PartitionValidator
from sluicegate.pipeline.jobs.audit.policies import Policies
from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, ReplayRecord, encode_headers
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.protocol.records.record_batch import RecordBatch
from sluicegate.protocol.records.writing import NewRecord, write_batch
from sluicegate.validation.rules.custom_rule import place_of
from sluicegate.validation.verdict import TIMED, Finding

Correct = Callable[[DeadLetter], ReplayRecord | None]


class NoFunction(Exception):
    """Raised if the named function does not exist. The message gives the reason and a fix."""


class FunctionFails(Exception):
    """Raised if the function raised an error, or returned an invalid record. The message names the dead letter."""


@lru_cache(maxsize=1)
def function_named(name: str) -> Correct:
    """Import the function. Raises NoFunction."""
    module, colon, within = name.partition(":")
    if not (module and colon and within):
        raise NoFunction(f"--by {name}: expected module:function, such as corrections:in_euros")
    try:
        found: Correct | None = getattr(import_module(module), within, None)
    except Exception as error:
        raise NoFunction(
            f"--by {name}: {module} cannot be imported ({type(error).__name__} at {place_of(error)}); install it, or "
            "add its folder to PYTHONPATH, both here and on the executors"
        ) from error
    if not callable(found):
        raise NoFunction(f"--by {name}: {module} has no function {within}")
    return found


def correct_letter(name: str, letter: DeadLetter) -> ReplayRecord | None:
    """Return the function's result for a dead letter. Raises FunctionFails, without record contents in its message."""
    try:
        found = function_named(name)(letter)
    except NoFunction:
        raise
    except Exception as error:
        raise FunctionFails(
            f"{letter.place}: {name} failed with {type(error).__name__} at {place_of(error)}; fix the "
            "function, or let it return None for records that it cannot correct, then start again"
        ) from error
    if found is not None and not _is_record(found):
        raise FunctionFails(
            f"{letter.place}: {name} returned {type(found).__name__}, not a valid record: a ReplayRecord of "
            "sluicegate.pipeline has an int64 timestamp in ms, a key and a value of bytes or None, and headers as "
            "pairs of a name (other bytes than UTF-8 as surrogates, surrogateescape) and bytes or None"
        )
    return found


def _is_record(found: object) -> bool:
    if (
        not isinstance(found, ReplayRecord)
        or not isinstance(found.timestamp, int)
        or not -(2**63) <= found.timestamp < 2**63
    ):
        return False
    data = (found.key, found.value, *(value for _, value in found.headers))
    return all(each is None or isinstance(each, bytes) for each in data) and all(
        isinstance(name, str) and _is_name(name) for name, _ in found.headers
    )


def _is_name(text: str) -> bool:
    try:
        encode_headers([(text, None)])
    except UnicodeEncodeError:
        return False
    return True


class RemainingReason(StrEnum):
    """Reasons why a dead letter is not written back, in addition to the reasons for which the proxy rejects records."""

    NO_DEAD_LETTER = "not_a_dead_letter"
    WHOLE_BATCH = "whole_batch_rejected"
    NOT_STORED = "no_longer_stored"
    ANOTHER = "another_record"
    NO_PARTITION = "no_such_partition"
    BY_FUNCTION = "omitted_by_function"
    COPY = "copy_of_stored_record"
    SENSITIVE = "sensitive_fields"
    UNWRITABLE = "unwritable_record"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The decision to write the letter back as `record`. `corrected` is whether it differs from the original record."""

    record: ReplayRecord
    corrected: bool


@dataclass(frozen=True, slots=True)
class RemainingLetter:
    """The decision not to write the letter back. `reason` is a code; `message` a sentence without record contents."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Validation:
    """The configuration for correcting and validating dead letters.

    `partitions` contains the number of partitions of each existing topic. `by` is the name of the user's function, or
    None. `now_ms` is the time against which timestamps are validated.
    """

    policies: Policies
    partitions: Mapping[str, int]
    by: str | None
    now_ms: int


class ReplayDecider:
    """Decides about the records in one partition of a dead-letter topic, in order."""

    def __init__(self, validation: Validation) -> None:
        self._asked = validation
        self._rulebook = validation.policies.rulebook()
        self._validators: dict[TopicPartition, PartitionValidator] = {}

    def decide(self, letter: DeadLetter) -> Replayed | RemainingLetter:
        """Return the decision. Raises FunctionFails and CannotBeValidated."""
        if letter.is_copy:
            return RemainingLetter(
                RemainingReason.COPY, f"the record is already in {letter.topic} (quarantine with mode: observe)"
            )
        partitions = self._asked.partitions.get(letter.topic)
        if partitions is None:
            return RemainingLetter(
                RemainingReason.NO_PARTITION, f"the topic {letter.topic} does not exist or is a source of this replay"
            )
        if not 0 <= letter.partition < partitions:
            return RemainingLetter(
                RemainingReason.NO_PARTITION,
                f"{letter.topic} has {partitions} partitions, so {letter.partition} does not exist",
            )
        record = letter.record
        if self._asked.by is not None:
            corrected = correct_letter(self._asked.by, letter)
            if corrected is None:
                return RemainingLetter(RemainingReason.BY_FUNCTION, f"{self._asked.by} returned None")
            record = corrected
        found = self._validated(letter, record)
        if isinstance(found, RemainingLetter):
            return found
        if (reason := why_unwritable(found.timestamp, encode_headers(found.headers))) is not None:
            return RemainingLetter(RemainingReason.UNWRITABLE, reason)
        return Replayed(found, found != letter.record)

    def _validated(self, letter: DeadLetter, record: ReplayRecord) -> ReplayRecord | RemainingLetter:
        """Return the record as the proxy would forward it, or the reason why the letter remains."""
        to = TopicPartition(letter.topic, letter.partition)
        if to not in self._validators:
            self._validators[to] = PartitionValidator(to, self._rulebook, self._asked.policies.limits)
        now_ms = self._asked.now_ms
        try:
            validated = self._validators[to].validate(_batch_of(record, letter.offset), now_ms)
        except CannotBeValidated as error:
            raise CannotBeValidated(f"{letter.place}: {error}") from error
        if PLACE in validated.rejected:
            return _remaining(validated.rejected[PLACE], now_ms)
        if PLACE in validated.masked:
            return RemainingLetter(
                RemainingReason.SENSITIVE, f"{letter.topic} has sensitive fields; produce the record through the proxy"
            )
        if PLACE in validated.fixed:
            fixed = memoryview(validated.fixed[PLACE].records)
            return replace(record, timestamp=RecordBatch(fixed, 0, len(fixed)).max_timestamp)
        return record


def _batch_of(record: ReplayRecord, offset: int) -> StoredBatch:
    new = NewRecord(record.timestamp, record.key, record.value, encode_headers(record.headers))
    frame = memoryview(write_batch([new]))
    return StoredBatch(frame, 0, len(frame), offset, offset, RecordBatch(frame, 0, len(frame)))


def _remaining(finding: Finding, now_ms: int) -> RemainingLetter:
    rules = [name for name, _ in finding.rules]
    reason = f"rule {', '.join(rules)}" if rules else finding.reason.value
    if not finding.bad_records:
        return RemainingLetter(reason, finding.message or finding.reason.value)
    bad = finding.bad_records[0]
    message = diagnosis_of(bad, now_ms)
    return RemainingLetter(reason, f"{bad.timestamp} {message}" if bad.reason in TIMED else message)
