"""Aggregates the verdicts on a partition's batches into rows.

The rows are verdicts, reasons, rejections by rehearsed bounds, and samples of bad records.
"""

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

import pyarrow as pa

from sluicegate.pipeline.jobs.audit.partition_validator import PLACE
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source.chunks import MissingRanges
from sluicegate.pipeline.source.decoding import BatchDecoder, BrokenRecords
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.record_batch import CODEC_MASK
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.timestamps import bounds_of
from sluicegate.validation.units import diagnose
from sluicegate.validation.validated_request import ValidatedRequest
from sluicegate.validation.verdict import TIMED, BadRecord, Finding, Reason

HOUR_MS = 3_600_000
DDL = (
    "what string, topic string, partition int, hour bigint, hour_until bigint, producer_id bigint, codec string, "
    "verdict string, reason string, rule string, key string, max_ms bigint, batches bigint, records bigint, "
    "bad_records bigint, first_offset bigint, last_offset bigint, timestamp bigint, appended_ms bigint, "
    "diagnosis string"
)
_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}
_FIELDS = [field.split() for field in DDL.split(", ")]
SCHEMA = pa.schema([(name, _TYPES[kind]) for name, kind in _FIELDS])
_LEGACY_ATTRIBUTES_AT = 17
_CODECS = [codec.name.lower() for codec in Codec]
_DIAGNOSIS_CHARACTERS = 1000
_PACKED_ROWS = 10_000  # a dict takes ten times the memory of a row


class RowKind(StrEnum):
    """The kinds of rows. The rows of each kind become a table."""

    BATCHES = "batches"
    FINDINGS = "findings"
    REHEARSED = "rehearsed"
    SAMPLES = "samples"
    MISSING = "missing"


ENCRYPTED = "encrypted"
"""The kind of the rows that count encrypted records. In these rows, `key` is the registry, and `reason` is the
encrypted part of the record.
"""
GOOD, MASK, UNCHECKED, PERHAPS = "good", "mask", "unchecked", "perhaps"
"""Verdicts besides the modes. GOOD: no violation. MASK: sensitive fields are masked or hashed. UNCHECKED: no checks are
configured. PERHAPS: times are out of bounds for only a part of the range in which the batch was appended.
"""
VERDICTS = (GOOD, *(mode.value for mode in Mode), MASK, UNCHECKED, PERHAPS)
_SENSITIVE = "sensitive fields in clear"

_Producer = tuple[int, int, int, str]
"""(hour, last hour of the range, producer id, codec)"""


class AppendTimeRange(NamedTuple):
    """The range (ms) in which a batch was appended. Its neighbours show that this was before `next_step_ms`."""

    earliest_ms: int
    latest_ms: int
    next_step_ms: int

    @property
    def hours(self) -> tuple[int, int]:
        """Return the first and the last hour (ms) in which the batch was appended, by the neighbours' times.

        If the range is at most an hour long, both are equal.
        """
        first = self.earliest_ms // HOUR_MS * HOUR_MS
        is_dated = self.next_step_ms - self.earliest_ms <= HOUR_MS
        return first, first if is_dated else self.next_step_ms // HOUR_MS * HOUR_MS


class UncertainRecords(NamedTuple):
    """The number of records whose times are out of bounds for only a part of the range."""

    reason: Reason
    records: int


def bad_records(validated: ValidatedRequest) -> int:
    """Return the number of bad records in the batch."""
    return max((finding.bad_count for _, finding in _findings_in(validated)), default=0)


def timed_reason(validated: ValidatedRequest) -> Reason | None:
    """Return the reason why the batch's times are out of bounds; None if they are within bounds."""
    for _, finding in _findings_in(validated):
        reasons = [finding.reason, *(bad.reason for bad in finding.bad_records)]
        if Reason.TIMESTAMP_IN_FUTURE in reasons:
            return Reason.TIMESTAMP_IN_FUTURE
        if Reason.TIMESTAMP_TOO_OLD in reasons:
            return Reason.TIMESTAMP_TOO_OLD
    return None


class AuditFindings:
    """The findings in one partition. `samples` is how many bad records to keep per reason and rule; None keeps all."""

    def __init__(self, of: TopicPartition, samples: int | None) -> None:
        self._of = of
        self._most = samples
        self._decoder = BatchDecoder()
        self._batches: dict[tuple[_Producer, str], list[int]] = {}
        self._findings: dict[tuple[_Producer, str, str, str | None], list[int]] = {}
        self._rehearsed: dict[tuple[_Producer, str, int], list[int]] = {}
        self._sampled: dict[tuple[str, str, str | None], int] = {}
        self._samples: list[dict[str, Any]] = []
        self._packed: list[pa.RecordBatch] = []
        self._encrypted = Counter[tuple[str, str]]()

    def add_encrypted(self, counts: Counter[tuple[str, str]]) -> None:
        """Add the numbers of records that serializers encrypted, by registry and encrypted part."""
        self._encrypted.update(counts)

    def add(
        self,
        batch: StoredBatch,
        validated: ValidatedRequest,
        appended: AppendTimeRange,
        perhaps: UncertainRecords | None = None,
    ) -> None:
        """Add a batch with its validation result, and the records that are `perhaps` bad too."""
        producer = _producer_of(batch, appended)
        may_be_bad = perhaps is not None and perhaps.records > 0
        violations = list(_findings_in(validated))
        masked = validated.masked.get(PLACE)
        good = MASK if masked is not None else PERHAPS if may_be_bad else GOOD
        verdict = UNCHECKED if validated.waived else violations[0][0].value if violations else good
        records = (0 if validated.waived else validated.records_of(PLACE)) or self._stored(batch)
        bad = max((finding.bad_count for _, finding in violations), default=0 if masked is None else masked.count)
        _add(self._batches, (producer, verdict), 1, records, bad)
        found = [
            (mode.value, finding.reason.value, finding.rules or ((None, finding.bad_count),))
            for mode, finding in violations
        ]
        if masked is not None:
            found.append((MASK, _SENSITIVE, masked.rules))
        if perhaps is not None and may_be_bad:
            found.append((PERHAPS, perhaps.reason.value, ((None, perhaps.records),)))
        for kind, reason, rules in found:
            for rule, count in rules:
                key = (producer, kind, reason, rule)
                _add(self._findings, key, 1, records, count, span=(self._first_offset(batch), batch.last_offset))
        for mode, finding in violations:
            is_ahead = Reason.TIMESTAMP_IN_FUTURE in (
                finding.reason,
                *(bad.reason for bad in finding.bad_records[:1]),
            )
            self._sample(batch, mode, finding, appended.latest_ms if is_ahead else appended.earliest_ms)
        if len(self._samples) >= _PACKED_ROWS:
            self._packed.append(pa.RecordBatch.from_pylist(self._samples, SCHEMA))
            self._samples = []
        if PLACE in validated.rehearsed:
            tried = validated.basis[PLACE].policy.rehearsed
            assert tried is not None
            for bound, count in zip(bounds_of(tried), validated.rehearsed[PLACE], strict=True):
                if count:
                    _add(self._rehearsed, (producer, bound.key, bound.max_ms), 1, records, count)

    def table(self, missing: MissingRanges) -> pa.Table:
        """Return all rows, and a row for each offset range that retention deleted before it was read (`missing`)."""
        rest = pa.Table.from_pylist([*self._rows(missing)], SCHEMA)
        return pa.concat_tables([pa.Table.from_batches(self._packed, SCHEMA), rest])

    def _rows(self, missing: MissingRanges) -> Iterator[dict[str, Any]]:
        where: dict[str, Any] = {"topic": self._of.topic, "partition": self._of.partition}
        for (producer, verdict), sums in self._batches.items():
            yield where | _row(RowKind.BATCHES, producer, sums) | {"verdict": verdict}
        for (producer, verdict, reason, rule), sums in self._findings.items():
            yield where | _row(RowKind.FINDINGS, producer, sums) | {"verdict": verdict, "reason": reason, "rule": rule}
        for (producer, key, max_ms), sums in self._rehearsed.items():
            yield where | _row(RowKind.REHEARSED, producer, sums) | {"key": key, "max_ms": max_ms}
        for (registry, part), records in self._encrypted.items():
            yield where | {"what": ENCRYPTED, "key": registry, "reason": part, "records": records}
        yield from self._samples
        for first, end in missing:
            yield where | {"what": RowKind.MISSING.value, "first_offset": first, "last_offset": end - 1}

    def _sample(self, batch: StoredBatch, mode: Mode, finding: Finding, appended_ms: int) -> None:
        common: dict[str, Any] = {"topic": self._of.topic, "partition": self._of.partition}
        common |= {"what": RowKind.SAMPLES.value, "verdict": mode.value, "appended_ms": appended_ms}
        if not finding.bad_records:  # the whole batch is bad
            rule = finding.rules[0][0] if finding.rules else None
            if self._has_room(mode, finding.reason.value, rule):
                text = (finding.message or finding.reason.value)[:_DIAGNOSIS_CHARACTERS]
                about = {"reason": finding.reason.value, "rule": rule, "diagnosis": text}
                self._samples.append(common | about | {"first_offset": self._first_offset(batch)})
            return
        offsets: list[int] | None = None
        for bad in finding.bad_records:
            rules = [rule for rule in bad.rules or (None,) if self._has_room(mode, bad.reason.value, rule)]
            if rules:
                offsets = offsets if offsets is not None else self._offsets(batch)
                at = offsets[bad.index] if bad.index < len(offsets) else self._first_offset(batch)
                found = common | {"reason": bad.reason.value, "timestamp": bad.timestamp}
                found |= {"first_offset": at, "diagnosis": diagnosis_of(bad, appended_ms)}
                self._samples += [found | {"rule": rule} for rule in rules]

    def _has_room(self, mode: Mode, reason: str, rule: str | None) -> bool:
        kind = (mode.value, reason, rule)
        self._sampled[kind] = self._sampled.get(kind, 0) + 1
        return self._most is None or self._sampled[kind] <= self._most

    def _first_offset(self, batch: StoredBatch) -> int:
        """Return a batch's first offset.

        A compressed message of an old format does not contain it. If the message cannot be decoded, return the last
        offset.
        """
        return batch.first_offset if batch.header is not None else [*self._offsets(batch), batch.last_offset][0]

    def _offsets(self, batch: StoredBatch) -> list[int]:
        """Return the offsets of the batch's records; an empty list if the batch cannot be decoded."""
        try:
            found: list[int] = self._decoder.decode(batch).offset.tolist()
        except BrokenRecords:
            return []
        return found

    def _stored(self, batch: StoredBatch) -> int:
        """Return the number of records in a batch that the validation did not parse."""
        if batch.header is not None:
            return max(batch.header.record_count, 0)
        return len(self._offsets(batch))


def _findings_in(validated: ValidatedRequest) -> Iterator[tuple[Mode, Finding]]:
    """Yield the batch's violations, beginning with that of the mode that determines what happens to the batch."""
    if PLACE in validated.rejected:
        yield Mode.QUARANTINE if PLACE in validated.to_quarantine else Mode.REJECT, validated.rejected[PLACE]
    if PLACE in validated.fixed:
        yield Mode.FIX, validated.fixed[PLACE].finding
    if PLACE in validated.marked:
        yield from ((Mode.MARK, found) for found in validated.marked[PLACE].findings)
    if PLACE in validated.observed:
        is_copied = PLACE in validated.to_quarantine and PLACE not in validated.rejected
        deciding, *others = validated.observed[PLACE]
        yield Mode.COPY if is_copied else Mode.OBSERVE, deciding
        yield from ((Mode.COPY if is_copied and found.broken else Mode.OBSERVE, found) for found in others)
    if PLACE in validated.unreadable:
        yield Mode.OBSERVE, validated.unreadable[PLACE]


def _producer_of(batch: StoredBatch, appended: AppendTimeRange) -> _Producer:
    header = batch.header
    attributes = batch.data[batch.start + _LEGACY_ATTRIBUTES_AT] if header is None else header.attributes
    codec_id = attributes & CODEC_MASK
    codec = _CODECS[codec_id] if codec_id < len(_CODECS) else str(codec_id)
    return *appended.hours, -1 if header is None else header.producer_id, codec


def diagnosis_of(bad: BadRecord, appended_ms: int) -> str:
    """Describe a record's fault as of a given time (ms), without the record's contents."""
    return (diagnose(bad.timestamp, appended_ms) if bad.reason in TIMED else bad.message)[:_DIAGNOSIS_CHARACTERS]


def _add(sums: dict[Any, list[int]], key: Any, *counts: int, span: tuple[int, int] | None = None) -> None:
    """Add counts to the sums. `span` is the first and the last offset; None if there are no offsets."""
    known = sums.get(key)
    if known is None:
        sums[key] = [*counts, *(span or ())]
        return
    for place, count in enumerate(counts):
        known[place] += count
    if span is not None:
        known[-1] = span[1]


def _row(what: RowKind, producer: _Producer, sums: list[int]) -> dict[str, Any]:
    names = ("batches", "records", "bad_records", "first_offset", "last_offset")
    found = dict(zip(("hour", "hour_until", "producer_id", "codec"), producer, strict=True)) | dict(
        zip(names, sums, strict=False)
    )
    return {"what": what.value} | found
