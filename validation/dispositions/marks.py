"""Marks bad records with headers (`mode: mark`), so that brokers store their batch and consumers can recognise them.

A mark consists of the header `sluicegate.reason` and, if the operator's rules are violated, `sluicegate.rule`. As in
dead letters, they come after the record's own headers. If the producer itself sends headers with these names, they are
renamed, even in good records. A producer can therefore neither forge nor hide a mark. Names are compared up to their
first NUL, because librdkafka's clients read no further. Only batches of magic 2 have headers.
"""

from collections.abc import Callable, Mapping
from typing import Final

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.integers import signed_varint
from sluicegate.protocol.records.batch_output import BatchTooLarge
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit
from sluicegate.protocol.records.record_batch import LOG_APPEND_TIME, RecordBatch, next_batch_end
from sluicegate.protocol.records.rewriting import CannotRewrite, Header, RecordChange, RecordReader, encoded
from sluicegate.validation.dispositions.bad_records import BoundCheck
from sluicegate.validation.dispositions.rewritten import Rewriting
from sluicegate.validation.policy import TopicPolicy, ValidationLimits
from sluicegate.validation.rule_violations import MOST_BROKEN
from sluicegate.validation.timestamps import window_of
from sluicegate.validation.validated_request import MarkedBatch
from sluicegate.validation.verdict import Finding, Reason

RENAMED: Final = b"renamed."
"""The prefix that renames a producer's own headers if they have the name of a mark."""

REASON_HEADER: Final = "sluicegate.reason"
RULE_HEADER: Final = "sluicegate.rule"
_RULE, _REASON = RULE_HEADER.encode(), REASON_HEADER.encode()
_MARKS = frozenset({_RULE, _REASON})
_REASONS = frozenset(reason.value.encode() for reason in Reason)
_RENAMED_MARKS = frozenset(RENAMED + name for name in _MARKS)
_LIKE_A_MARK = b"sluicegate.r"
_CHANGE_WORK = 256
_ANY_SIZE = 1 << 50
_MOST_KNOWN = 1000

WhyBad = Callable[[int, int, int], Reason | None]
"""Maps a record's index, timestamp (ms) and key size (-1: null) to the bound that the record violates."""


def mark_bad_records(
    records: memoryview,
    found: tuple[Finding, ...],
    policy: TopicPolicy,
    now_ms: int,
    most_bytes: int,
    limits: ValidationLimits,
    decompressor: Decompressor,
    budget: DecompressionBudget,
) -> MarkedBatch | Finding | None:
    """Return a batch of magic 2 with all bad records marked; None if nothing changes.

    `found` contains the findings about its bad records, from bounds and from rules. `most_bytes` is the maximum size of
    the marked batch. `budget` is for reading the payload again. Returns a rejection if the batch cannot be rewritten or
    if it would exceed `most_bytes`. Raises OverLimit for a record that is too large, and the errors of `budget`.
    """
    batch = RecordBatch(records, 0, next_batch_end(records, 0) or len(records))
    rewriting = Rewriting(records, batch, most_bytes, limits, decompressor, budget)
    try:
        marks = _Marks(_broken_by(found), _why_bad(batch, found, policy, now_ms), batch, budget)
        if rewriting.changed(marks, (_LIKE_A_MARK,)) is not None:
            return MarkedBatch(rewriting.finished(batch.base_timestamp, batch.max_timestamp), found)
        if not found:
            return None
        raise CannotRewrite("its bad records were not found again")
    except CannotRewrite as error:
        return found[0] if found else _cannot_mark(str(error), batch.record_count)
    except BatchTooLarge:
        return Finding(ErrorCode.MESSAGE_TOO_LARGE, Reason.BATCH_TOO_LARGE, records=batch.record_count)


def without_marks(records: memoryview, limits: ValidationLimits, decompressor: Decompressor) -> bytes | None:
    """Return a stored batch of magic 2 as its producer sent it: without marks, and with original header names.

    Returns None if the batch has no marks or cannot be rewritten.
    """
    batch = RecordBatch(records, 0, next_batch_end(records, 0) or len(records))
    budget = DecompressionBudget(limits.max_decompressed_bytes, 0, _no_check)
    rewriting = Rewriting(records, batch, _ANY_SIZE, limits, decompressor, budget)
    try:
        if rewriting.changed(_unmarked, (_LIKE_A_MARK, RENAMED + _LIKE_A_MARK)) is None:
            return None
        return rewriting.finished(batch.base_timestamp, batch.max_timestamp)
    except (CannotRewrite, BatchTooLarge, OverLimit):
        return None


def _unmarked(record: RecordReader) -> RecordChange | None:
    """Return the change that removes a mark and restores renamed headers."""
    if not record.is_watched:
        return None
    ours = _count_of_ours(record.last_headers())
    renamed = 0

    def name_without_prefix(name: bytes) -> bytes:
        nonlocal renamed
        if _as_in_c(name) not in _RENAMED_MARKS:
            return name
        renamed += 1
        return name.removeprefix(RENAMED)

    own = record.renamed(name_without_prefix, ours)
    return RecordChange(headers=signed_varint(record.header_count - ours) + own) if ours or renamed else None


def _as_in_c(name: bytes) -> bytes:
    """Return a header name as librdkafka's clients read it: up to the first NUL."""
    return name.partition(b"\0")[0]


def _count_of_ours(last: tuple[Header, ...]) -> int:
    """Return how many of the last headers belong to a mark. A mark is a known reason, followed by rules."""
    for size in (1, 2):
        name, value = last[-size] if len(last) >= size else (b"", None)
        if name == _REASON and value in _REASONS:
            return size
        if name != _RULE:
            break
    return 0


def _no_check() -> None:
    """Do nothing, because no other client is waiting for this thread."""


def _cannot_mark(why: str, records: int) -> Finding:
    text = f"The batch may have headers that only the proxy may set, and the proxy cannot rename them: {why}."
    return Finding(ErrorCode.INVALID_RECORD, Reason.RECORD_FORMAT, text, records=records)


def _broken_by(found: tuple[Finding, ...]) -> Mapping[int, tuple[str, ...]]:
    """Return the names of violated rules by record. Raises CannotRewrite unless they are known for all records."""
    broken = next((each.broken for each in found if each.broken is not None), {})
    if len(broken) >= MOST_BROKEN:
        raise CannotRewrite(f"more than {MOST_BROKEN} records violate rules")
    return broken


def _why_bad(batch: RecordBatch, found: tuple[Finding, ...], policy: TopicPolicy, now_ms: int) -> WhyBad:
    if all(each.broken is not None for each in found):
        return _good
    return BoundCheck(batch, window_of(policy, now_ms), policy.compacted)


def _good(_index: int, _time: int, _key_size: int) -> None:
    """Return None, because no bound is violated."""


class _Marks:
    """A callable that returns each record's change: its marks, and new names for headers that look like marks."""

    def __init__(
        self, broken: Mapping[int, tuple[str, ...]], why_bad: WhyBad, batch: RecordBatch, budget: DecompressionBudget
    ) -> None:
        self._broken = broken
        self._why_bad = why_bad
        self._time_of_all = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
        self._budget = budget
        self._known: dict[tuple[Reason | None, tuple[str, ...]], RecordChange] = {}

    def __call__(self, record: RecordReader) -> RecordChange | None:
        time = record.timestamp if self._time_of_all is None else self._time_of_all
        reason, rules = self._why_bad(record.index, time, record.key_size), self._broken.get(record.index, ())
        if record.is_watched:
            return self._renamed(record, reason, rules)
        if reason is None and not rules:
            return None
        self._budget.worked(_CHANGE_WORK)
        return self._of(reason, rules)

    def _of(self, reason: Reason | None, rules: tuple[str, ...]) -> RecordChange:
        """Return the marks for a violation. Most bad records in a batch share one result."""
        found = self._known.get((reason, rules))
        if found is None:
            ours = _ours(reason, rules)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[reason, rules] = found = RecordChange(more=encoded(ours), more_count=len(ours))
        return found

    def _renamed(self, record: RecordReader, reason: Reason | None, rules: tuple[str, ...]) -> RecordChange | None:
        found = 0

        def name_with_prefix(name: bytes) -> bytes:
            nonlocal found
            if _as_in_c(name) not in _MARKS:
                return name
            found += 1
            return RENAMED + name

        own = record.renamed(name_with_prefix)
        if not found:
            return self._of(reason, rules) if reason is not None or rules else None
        ours = _ours(reason, rules)
        return RecordChange(headers=signed_varint(record.header_count + len(ours)) + own + encoded(ours))


def _ours(reason: Reason | None, rules: tuple[str, ...]) -> tuple[Header, ...]:
    if reason is None and not rules:
        return ()
    names: tuple[Header, ...] = ((_RULE, ", ".join(rules).encode()),) if rules else ()
    return ((_REASON, (reason or Reason.RULE_VIOLATED).value.encode()), *names)
