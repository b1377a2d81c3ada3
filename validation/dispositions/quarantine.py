"""Finds all bad records of a rejected batch for the topic's quarantine, and builds the headers that describe them.

A response lists a bounded number of record errors (`limits.max_record_errors`), so a verdict may not contain all bad
records. For such batches, a second pass finds all of them with the same bounds and the same time.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from sluicegate.protocol.integers import signed_varint
from sluicegate.protocol.produce_versions import ONE_BATCH_SINCE
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit, PayloadLimits
from sluicegate.protocol.records.columns import read_headers
from sluicegate.protocol.records.contents import TakenRecords, TooMuch, take_records
from sluicegate.protocol.records.record_batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC_2,
    RecordBatch,
    magic_at,
    next_batch_end,
)
from sluicegate.protocol.records.rewriting import encoded
from sluicegate.validation.dispositions.bad_records import BoundCheck
from sluicegate.validation.dispositions.marks import REASON_HEADER, RULE_HEADER
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.timestamps import window_of
from sluicegate.validation.validated_request import ValidationBasis
from sluicegate.validation.validator import Submission
from sluicegate.validation.verdict import Broken, Finding, Reason

Headers = Sequence[tuple[bytes, bytes | None]]
_HEADERS_AT_ONCE = 500


class DeadLetterHeader(StrEnum):
    """The names of the headers, in order. A header is absent if its value is unknown, such as a client's principal.

    `OWN` contains all of the record's own headers. It is present only if librdkafka cannot write one of their names.
    `COPY` is "true" if the record is also stored in its own topic (`quarantine` with `mode: observe`), and absent
    otherwise.
    """

    OWN = "sluicegate.headers"
    REASON = REASON_HEADER
    TOPIC = "sluicegate.topic"
    PARTITION = "sluicegate.partition"
    INDEX = "sluicegate.index"
    TIMESTAMP = "sluicegate.timestamp"
    RULE = RULE_HEADER
    CLIENT_ID = "sluicegate.client.id"
    SOFTWARE = "sluicegate.software"
    PRINCIPAL = "sluicegate.principal"
    ADDRESS = "sluicegate.client.address"
    COPY = "sluicegate.copy"
    VERSION = "sluicegate.version"


def librdkafka_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Return headers as librdkafka writes them: names are UTF-8 C strings, and other bytes are escaped."""
    return [(name.decode(errors="backslashreplace").replace("\0", "\\x00"), value) for name, value in headers]


def as_written(headers: Headers, give_way: Callable[[], None]) -> list[tuple[str, bytes | None]]:
    """Return headers like `librdkafka_headers`. If that changes a name, append `OWN` with the original headers.

    Calls `give_way` after every few headers.
    """
    found: list[tuple[str, bytes | None]] = []
    is_exact = True
    for some in _in_pieces(headers):
        written = librdkafka_headers(some)
        is_exact = is_exact and all(text.encode() == name for (text, _), (name, _) in zip(written, some, strict=True))
        found += written
        give_way()
    if not is_exact:
        found.append((DeadLetterHeader.OWN, pack_headers(headers, give_way)))
    return found


def pack_headers(headers: Headers, give_way: Callable[[], None]) -> bytes:
    """Return the value of `OWN`: the headers in the record format (KIP-98), starting with their count."""
    found = bytearray(signed_varint(len(headers)))
    for some in _in_pieces(headers):
        found += encoded(some)
        give_way()
    return bytes(found)


def _in_pieces(headers: Headers) -> Iterator[tuple[tuple[bytes, bytes | None], ...]]:
    for at in range(0, len(headers), _HEADERS_AT_ONCE):
        yield tuple(headers[at : at + _HEADERS_AT_ONCE])


def unpack_headers(data: bytes) -> list[tuple[bytes, bytes | None]] | None:
    """Return the headers that `pack_headers` has packed, or None for any other bytes."""
    return read_headers(memoryview(data), 0, len(data))


class ViolationCause(NamedTuple):
    """The bound or the rules that a bad record violates. `reason` is RULE if it violates no bound."""

    reason: Reason
    rules: tuple[str, ...] = ()


class QuarantineMismatch(Exception):
    """Raised if the second pass over a batch finds different bad records than the first. This is a bug in the proxy."""


def can_be_quarantined(submission: Submission) -> bool:
    """Return whether individual records can be extracted, which is possible only for batches of magic 2."""
    records = submission.records
    is_one_batch = records is not None and submission.version >= ONE_BATCH_SINCE
    return is_one_batch and records is not None and magic_at(records, 0) == MAGIC_2


def bad_records_of(
    submission: Submission,
    found: Sequence[Finding],
    basis: ValidationBasis,
    limits: ValidationLimits,
    decompressor: Decompressor,
    budget: DecompressionBudget,
    most_bytes: int,
) -> TakenRecords:
    """Return a batch's bad records, each with its violations.

    `found` contains the verdicts of bounds, rules, or both. Raises TooMuch if the records need more than `most_bytes`,
    QuarantineMismatch and Abandoned.
    """
    records = submission.records
    assert records is not None
    batch = RecordBatch(records, 0, next_batch_end(records, 0) or len(records))
    claimed = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
    wanted = _wanted(batch, found, basis)
    asked = (budget, wanted, most_bytes, claimed)
    count, base = batch.record_count, batch.base_timestamp
    try:
        if batch.codec_id == Codec.NONE.value:
            taken = take_records(records, HEADER_BYTES, batch.end, count, base, None, *asked)
        else:
            payload = records[HEADER_BYTES : batch.end]
            bounds = PayloadLimits(limits.plain_limit(len(payload)), limits.max_decompression_window_bytes, budget)
            pieces = decompressor.open(Codec(batch.codec_id), payload, bounds)
            first = pieces.more() or b""
            taken = take_records(first, 0, len(first), count, base, pieces, *asked)
    except OverLimit as error:
        raise QuarantineMismatch(str(error)) from error
    finally:
        decompressor.close()
    counts = [each.bad_count for each in found]
    if taken is None or not max(counts) <= len(taken.records) <= sum(counts):
        again = "none that could be read" if taken is None else len(taken.records)
        raise QuarantineMismatch(f"{counts} records were found bad in the first pass, {again} in the second")
    return taken


def _wanted(batch: RecordBatch, found: Sequence[Finding], basis: ValidationBasis) -> "_Wanted":
    bounds = None
    broken: Broken = {}
    for each in found:
        if each.broken is None:
            bounds = BoundCheck(batch, window_of(basis.policy, basis.now_ms), basis.policy.compacted)
        elif each.bad_count > len(each.broken):
            raise TooMuch
        else:
            broken = each.broken
    return _Wanted(bounds, broken)


class _Wanted:
    """A callable that returns a record's violations.

    `broken` maps records to the rules that they broke in the first pass.
    """

    def __init__(self, bounds: BoundCheck | None, broken: Broken) -> None:
        self._bounds = bounds
        self._broken = broken

    def __call__(self, index: int, time: int, key_size: int) -> ViolationCause | None:
        reason = None if self._bounds is None else self._bounds(index, time, key_size)
        rules = self._broken.get(index, ())
        return ViolationCause(reason or Reason.RULE_VIOLATED, rules) if reason is not None or rules else None
