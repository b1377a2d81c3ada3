"""Marks bad records with headers (`mode: mark`), so that their batch can be stored and consumers recognise them.

A mark is the headers `sluicegate.reason` and, if the operator's rules are violated, `sluicegate.rule`, after the
record's own, as a dead letter has them. The producer's own headers of these names are renamed, also in good records: a
producer can neither forge a mark nor hide one. A name counts up to its first NUL, because librdkafka's clients read no
further. Only batches of magic 2 have headers.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.record_batch import LOG_APPEND_TIME, RecordBatch, next_batch_end
from sluicegate.protocol.records.rewriting import CannotRewrite, Change, Header, RecordTable, encoded_headers
from sluicegate.validation.dispositions.bad_records import BadByBounds
from sluicegate.validation.dispositions.payload import payload_of, plain_payload, with_records
from sluicegate.validation.policy import Framing, TopicPolicy, ValidationLimits
from sluicegate.validation.rules.findings import MOST_BROKEN
from sluicegate.validation.timestamps import window_of
from sluicegate.validation.verdict import Reason, Rejected

RENAMED: Final = b"renamed."
"""The prefix of the new name of a producer's own header that has the name of a mark."""

REASON_HEADER: Final = "sluicegate.reason"
RULE_HEADER: Final = "sluicegate.rule"
_RULE, _REASON = RULE_HEADER.encode(), REASON_HEADER.encode()
_MARKS = frozenset({_RULE, _REASON})
_REASONS = frozenset(reason.value.encode() for reason in Reason)
_RENAMED_MARKS = frozenset(RENAMED + name for name in _MARKS)
_LIKE_A_MARK = re.compile(rb"sluicegate\.r(?:ule|eason)")
_CHANGE_WORK = 512

WhyBad = Callable[[int, int, int], Reason | None]
"""From a record's position, its time (ms) and its key's size (-1: null) to the bound that it breaks."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A batch with marks: `records` replaces the original. `found`: the avoided rejections; none if only headers of
    the producer were renamed.
    """

    records: bytes
    found: tuple[Rejected, ...]


def mark(
    records: memoryview,
    found: tuple[Rejected, ...],
    policy: TopicPolicy,
    now_ms: int,
    limits: ValidationLimits,
    decompressor: Decompressor,
    budget: DecompressionBudget,
) -> Marked | Rejected | None:
    """Return a batch of magic 2 with all bad records marked; None if nothing changes.

    `found`: the rejections for its bad records, by bounds and by rules. `budget`: a budget for reading the payload
    again. The result is a rejection if the batch cannot be rewritten, or if it would exceed the topic's
    max.message.bytes. Raises the errors of `budget`.
    """
    batch = RecordBatch(records, 0, next_batch_end(records, 0) or len(records))
    stated = payload_of(batch, records)
    plain = plain_payload(stated, Codec(batch.codec_id), Framing.BROKER, limits, decompressor, budget)
    try:
        if plain is None:
            raise CannotRewrite("its payload cannot be decompressed as a whole")
        table = RecordTable(plain, batch.record_count, batch.base_timestamp)
        claimed = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
        changes = dict(_changes(table, claimed, _broken_by(found), _why_bad(batch, found, policy, now_ms), budget))
        if not changes and not found:
            return None
        made = with_records(batch, table.rewritten(changes, limits.max_decompressed_bytes))
    except CannotRewrite as error:
        return found[0] if found else _cannot_mark(str(error), batch.record_count)
    if policy.max_message_bytes is not None and len(made) > policy.max_message_bytes:
        return Rejected(ErrorCode.MESSAGE_TOO_LARGE, Reason.TOO_LARGE, records=batch.record_count)
    return Marked(made, found)


def without_marks(records: memoryview, limits: ValidationLimits, decompressor: Decompressor) -> bytes | None:
    """Return a stored batch of magic 2 as its producer sent it, without marks and with its own names of headers.

    None: it has none, or cannot be rewritten.
    """
    batch = RecordBatch(records, 0, next_batch_end(records, 0) or len(records))
    budget = DecompressionBudget(limits.max_decompressed_bytes, 0, _no_check)
    stated = payload_of(batch, records)
    plain = plain_payload(stated, Codec(batch.codec_id), Framing.BROKER, limits, decompressor, budget)
    if plain is None:
        return None
    try:
        table = RecordTable(plain, batch.record_count, batch.base_timestamp)
        changes = {}
        for index in table.with_a_header_like(_LIKE_A_MARK):
            stored = table.headers(index)
            own = [
                (name.removeprefix(RENAMED) if _as_in_c(name) in _RENAMED_MARKS else name, value)
                for name, value in _without_ours(stored)
            ]
            if own != stored:
                changes[index] = Change(headers=encoded_headers(own))
        return with_records(batch, table.rewritten(changes, limits.max_decompressed_bytes)) if changes else None
    except CannotRewrite:
        return None


def _as_in_c(name: bytes) -> bytes:
    """Return a name as librdkafka's clients read it: it ends at the first NUL."""
    return name.partition(b"\0")[0]


def _without_ours(headers: list[Header]) -> list[Header]:
    """Return the headers before a mark, which ends them: a known reason, and rules after it."""
    for size in (1, 2):
        name, value = headers[-size] if len(headers) >= size else (b"", None)
        if name == _REASON and value in _REASONS:
            return headers[:-size]
        if name != _RULE:
            break
    return headers


def _no_check() -> None:
    """Do nothing: no other client waits for this thread."""


def _cannot_mark(why: str, records: int) -> Rejected:
    text = f"The batch may have headers that only the proxy sets, and the proxy cannot rename them: {why}."
    return Rejected(ErrorCode.INVALID_RECORD, Reason.STRUCTURE, text, records=records)


def _broken_by(found: tuple[Rejected, ...]) -> Mapping[int, tuple[str, ...]]:
    """Return the names of violated rules by record. Raises CannotRewrite if not all of them are known."""
    broken = next((each.broken for each in found if each.broken is not None), {})
    if len(broken) >= MOST_BROKEN:
        raise CannotRewrite(f"more than {MOST_BROKEN} records violate rules")
    return broken


def _why_bad(batch: RecordBatch, found: tuple[Rejected, ...], policy: TopicPolicy, now_ms: int) -> WhyBad:
    if all(each.broken is not None for each in found):
        return _good
    return BadByBounds(batch, window_of(policy, now_ms), policy.compacted)


def _good(_index: int, _time: int, _key_size: int) -> None:
    """No bound is broken."""


def _changes(
    table: RecordTable,
    time_of_all: int | None,
    broken: Mapping[int, tuple[str, ...]],
    why_bad: WhyBad,
    budget: DecompressionBudget,
) -> Iterator[tuple[int, Change]]:
    """Yield the records with new headers. `time_of_all`: the time (ms) of all records, if their batch sets one."""
    forged = set(table.with_a_header_like(_LIKE_A_MARK))
    for index in range(table.count):
        time = table.timestamps[index] if time_of_all is None else time_of_all
        ours = _ours(why_bad(index, time, table.key_sizes[index]), broken.get(index, ()))
        own = table.headers(index) if index in forged else []
        renamed = [(RENAMED + name if _as_in_c(name) in _MARKS else name, value) for name, value in own]
        if renamed != own:
            yield index, Change(headers=encoded_headers(renamed + ours))
        elif ours:
            yield index, Change(headers=table.with_more_headers(index, ours))
        budget.worked(_CHANGE_WORK if ours or own else 1)


def _ours(reason: Reason | None, rules: tuple[str, ...]) -> list[Header]:
    if reason is None and not rules:
        return []
    names: list[Header] = [(_RULE, ", ".join(rules).encode())] if rules else []
    return [(_REASON, (reason or Reason.RULE).value.encode()), *names]
