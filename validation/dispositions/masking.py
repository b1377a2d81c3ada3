"""Masks a batch's sensitive fields before the batch is forwarded. A batch that cannot be masked is rejected.

A sensitive value is never stored in clear. In every mode of the topic, the proxy rejects values that cannot be parsed,
messages of magic 0 or 1, payloads that cannot be rewritten, and batches that are too large after masking.

Batches also contain bytes that a client chooses freely and that no consumer reads as records. These are never stored:

- The time, name and comment in a gzip header (RFC 1952), and zstd's skippable frames and empty blocks (RFC 8878). The
  proxy recompresses every compressed batch, even if it masked no field.
- The base timestamp. A rewritten batch gets the timestamp of its first record as its base timestamp. A batch with any
  other base timestamp is rewritten.
- Bytes that no producer uses but a broker would store. The proxy rejects batches with unknown attributes (of the batch
  or a record), with overlong numbers, or with an epoch and sequence but no producer id.
"""

from collections import Counter

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.records.batch_output import BatchTooLarge
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.contents import MOST_HEADERS
from sluicegate.protocol.records.record_batch import (
    CODEC_MASK,
    MAGIC_2,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
    CorruptBatch,
    RecordBatch,
    magic_at,
    next_batch_end,
)
from sluicegate.protocol.records.rewriting import CannotRewrite, RecordChange, RecordReader
from sluicegate.validation.dispositions.rewritten import Rewriting
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.rule_violations import RuleViolations
from sluicegate.validation.rules.rule import Client, Header, Outage, Part, RuledRecord, SchemaError
from sluicegate.validation.sensitive.edits import Unmaskable
from sluicegate.validation.sensitive.from_keys import Sensitive
from sluicegate.validation.validated_request import MaskedBatch
from sluicegate.validation.verdict import Finding, Reason

_RECORD_WORK = 1024
_TOKEN_WORK = 512
_USED_ATTRIBUTES = CODEC_MASK | TRANSACTIONAL
_OF_NO_PRODUCER = (-1, 0)  # sarama and kafkajs write 0
OF_READABLE_BATCHES = frozenset({Reason.REQUEST_RULE_VIOLATED, Reason.DEPENDENCY_UNAVAILABLE, Reason.SCHEMA_UNUSABLE})
"""Reasons for rejecting a batch that has no bad records and can still be read."""


def mask(
    records: memoryview,
    where: tuple[str, int, Client],
    sensitive: Sensitive,
    most_bytes: int,
    limits: ValidationLimits,
    decompressor: Decompressor,
    again: DecompressionBudget,
    budget: DecompressionBudget,
    is_ours: bool,
) -> MaskedBatch | Finding | None:
    """Return the masked batch, a finding if it cannot be masked, or None if it may stay unchanged.

    - `where`: the topic, the partition and the client.
    - `most_bytes`: the maximum size of the masked batch.
    - `again`: a budget for reading the payload again.
    - `budget`: the request's budget, for record errors.
    - `is_ours`: whether the proxy itself compressed the batch.

    Raises OverLimit for a record that is too large, and the errors of both budgets.
    """
    try:
        end = next_batch_end(records, 0)
    except CorruptBatch:
        return _rejected("it has no whole batch", sensitive, 0)
    if end is None or magic_at(records, 0) < MAGIC_2:
        return _rejected("only batches of magic 2 can be rewritten; use a newer client", sensitive, 0)
    batch = RecordBatch(records, 0, end)
    unused = _unused_fields(batch)
    if unused is not None:
        return _rejected(unused, sensitive, batch.record_count)
    rewriting = Rewriting(records, batch, most_bytes, limits, decompressor, again)
    found = RuleViolations(budget.record_errors)
    is_recompressed = batch.codec_id != Codec.NONE.value and not is_ours
    masks = _Masks(where, sensitive, found, limits.max_decompression_window_bytes, again, batch, is_recompressed)
    try:
        changed = rewriting.changed(masks)
        rejection = found.finding(batch.record_count, budget)
        if rejection is not None:
            return rejection
        if changed is None:
            return None
        made = rewriting.finished(changed.base_timestamp, changed.latest)
    except CannotRewrite as error:
        return _rejected(str(error), sensitive, batch.record_count)
    except BatchTooLarge:
        return Finding(ErrorCode.MESSAGE_TOO_LARGE, Reason.BATCH_TOO_LARGE, records=batch.record_count)
    return MaskedBatch(made, masks.count, tuple(masks.rules.items()))


class _Masks:
    """A callable that masks each record's value, and notes in `found` the records that cannot be masked.

    `count` is the number of changed records, and `rules` contains that number per policy. The first record always gets
    a change, even an empty one, if `is_rewritten` or if its timestamp is not the batch's base timestamp. This causes
    the whole `batch` to be rewritten.
    """

    def __init__(
        self,
        where: tuple[str, int, Client],
        sensitive: Sensitive,
        found: RuleViolations,
        most_bytes: int,
        budget: DecompressionBudget,
        batch: RecordBatch,
        is_rewritten: bool,
    ) -> None:
        self.count = 0
        self.rules: Counter[str] = Counter()
        self._sensitive = sensitive
        self._found = found
        self._most_bytes = most_bytes
        self._budget = budget
        self._base_timestamp = batch.base_timestamp
        self._is_rewritten = is_rewritten
        self._finder = sensitive.rule
        self._reads_headers = self._finder is not None and Part.HEADERS in self._finder.rule.parts
        topic, partition, client = where
        self._record = RuledRecord(topic, partition, 0, 0, None, None, (), client)

    def __call__(self, read: RecordReader) -> RecordChange | None:
        """Return the change for a record. Raises OverLimit if its masked value is too large."""
        self._budget.worked(_RECORD_WORK)
        if read.attributes:
            raise CannotRewrite("a record has attributes, which clients never set and consumers never read")
        if read.is_padded:
            raise CannotRewrite("a record has a number in more bytes than necessary, which clients never write")
        value, sensitive = read.value(), self._sensitive
        index, time = read.index, read.timestamp
        base = time if index == 0 and time != self._base_timestamp else None
        try:
            headers = self._headers(read) if self._reads_headers and value is not None else ()
            self._record.fill(index, time, None, value, headers, -1, read.value_size)
            masked = sensitive.values.masked(self._record, self._worked, self._most_bytes)
        except Unmaskable as error:
            name = sensitive.first if error.fields is None else error.fields.name
            self._found.note(index, time, name, str(error))
        except SchemaError as error:
            self._found.note(index, time, sensitive.first, str(error))
        except Outage as error:
            assert self._finder is not None
            self._found.note_outage(self._finder, error)
        else:
            if masked is not None:
                self.count += 1
                self.rules.update(masked.names)
                return RecordChange(value=masked.data, time=base)
        return RecordChange(time=base) if index == 0 and (self._is_rewritten or base is not None) else None

    def _headers(self, read: RecordReader) -> tuple[Header, ...]:
        """Return the record's headers, one of which may name the schema. Raises Unmaskable if there are too many."""
        if read.header_count > MOST_HEADERS:
            raise Unmaskable(f"the record has {read.header_count} headers, more than {MOST_HEADERS}")
        return read.headers()

    def _worked(self, size: int) -> None:
        self._budget.worked(_TOKEN_WORK + size)


def _unused_fields(batch: RecordBatch) -> str | None:
    """Describe the unused header fields with a value that a broker would store. Return None if there are none.

    No producer uses these fields.
    """
    if batch.attributes & ~_USED_ATTRIBUTES:
        return f"its attributes ({batch.attributes & 0xFFFF:#06x}) have bits that no producer sets"
    is_idempotent = batch.producer_id > NO_PRODUCER_ID
    others = {batch.producer_epoch, batch.base_sequence}
    if not is_idempotent and (batch.producer_id != NO_PRODUCER_ID or not others.issubset(_OF_NO_PRODUCER)):
        return "it has an epoch or a sequence, but no producer id"
    return None


def _rejected(why: str, sensitive: Sensitive, records: int) -> Finding:
    text = f"The batch may have sensitive fields ({sensitive.first}) that cannot be masked: {why}."
    return Finding(ErrorCode.INVALID_RECORD, Reason.RULE_VIOLATED, text, records=records, rules=((sensitive.first, 0),))
