"""Masks the sensitive fields of a batch that would be forwarded; what cannot be masked is rejected.

Never stores a value in clear: a value that cannot be parsed, a message of magic 0 or 1, a payload that cannot be
rewritten, and a batch that is too large after masking are all rejected, whatever the mode of the topic is.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit
from sluicegate.protocol.records.record_batch import MAGIC_2, CorruptBatch, RecordBatch, magic_at, next_batch_end
from sluicegate.protocol.records.rewriting import CannotRewrite, Change, RecordTable
from sluicegate.validation.dispositions.payload import payload_of, plain_payload, with_records
from sluicegate.validation.policy import Framing, ValidationLimits
from sluicegate.validation.rejections import over_limit
from sluicegate.validation.rules.findings import Findings
from sluicegate.validation.rules.rule import Client, Outage, Part, RuledRecord, SchemaError
from sluicegate.validation.sensitive.edits import Unmaskable
from sluicegate.validation.sensitive.from_keys import Sensitive
from sluicegate.validation.verdict import Reason, Rejected

_RECORD_WORK = 1024
_TOKEN_WORK = 512
OF_READABLE_BATCHES = frozenset({Reason.REQUEST_RULE, Reason.OUTAGE, Reason.SCHEMA})
"""Reasons for rejecting batches without bad records whose records can be read all the same."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A batch with masked fields: `records` replaces the original, of which `count` records were changed.

    `rules`: the policies by name, and how many records each of them changed.
    """

    records: bytes
    count: int
    rules: tuple[tuple[str, int], ...]


def mask(
    records: memoryview,
    where: tuple[str, int, Client],
    sensitive: Sensitive,
    max_message_bytes: int | None,
    limits: ValidationLimits,
    decompressor: Decompressor,
    again: DecompressionBudget,
    budget: DecompressionBudget,
) -> Masked | Rejected | None:
    """Return a batch without sensitive values in clear, a rejection, or None if there are no such values.

    `where`: the topic, the partition and the client. `again`: a budget for reading the payload again; `budget`: that of
    the request, for record errors. Raises the errors of both.
    """
    try:
        end = next_batch_end(records, 0)
    except CorruptBatch:
        return _rejected("it has no whole batch", sensitive, 0)
    if end is None or magic_at(records, 0) < MAGIC_2:
        return _rejected("only batches of magic 2 can be rewritten; use a newer client", sensitive, 0)
    batch = RecordBatch(records, 0, end)
    codec = Codec(batch.codec_id)
    plain = plain_payload(payload_of(batch, records), codec, Framing.BROKER, limits, decompressor, again)
    found = Findings(budget.record_errors)
    try:
        if plain is None:
            raise CannotRewrite("its payload cannot be decompressed as a whole")
        table = RecordTable(plain, batch.record_count, batch.base_timestamp)
        rules: Counter[str] = Counter()
        changes = dict(_changes(table, where, sensitive, found, rules, again, limits.max_decompression_window_bytes))
        rejection = found.rejection(batch.record_count, budget)
        if rejection is not None:
            return rejection
        if not changes:
            return None
        made = with_records(batch, table.rewritten(changes, limits.max_decompressed_bytes))
    except OverLimit as over:
        return over_limit(where[0], where[1], over, batch.record_count)
    except CannotRewrite as error:
        return _rejected(str(error), sensitive, batch.record_count)
    if max_message_bytes is not None and len(made) > max_message_bytes:
        return Rejected(ErrorCode.MESSAGE_TOO_LARGE, Reason.TOO_LARGE, records=batch.record_count)
    return Masked(made, len(changes), tuple(rules.items()))


def _changes(
    table: RecordTable,
    where: tuple[str, int, Client],
    sensitive: Sensitive,
    found: Findings,
    rules: Counter[str],
    budget: DecompressionBudget,
    most_bytes: int,
) -> Iterator[tuple[int, Change]]:
    """Yield the records with masked fields, counted by policy in `rules`; note records that cannot be masked in
    `found`.
    """

    def worked(size: int) -> None:
        budget.worked(_TOKEN_WORK + size)

    topic, partition, client = where
    finder = sensitive.rule
    reads_headers = finder is not None and Part.HEADERS in finder.rule.needs
    for index in range(table.count):
        budget.worked(_RECORD_WORK)
        value, time = table.value(index), table.timestamps[index]
        headers = tuple(table.headers(index)) if reads_headers and value is not None else ()
        record = RuledRecord(topic, partition, index, time, None, value, headers, client)
        try:
            masked = sensitive.values.masked(record, worked, most_bytes)
        except Unmaskable as error:
            name = sensitive.first if error.fields is None else error.fields.name
            found.note(index, time, name, str(error))
        except SchemaError as error:
            found.note(index, time, sensitive.first, str(error))
        except Outage as error:
            assert finder is not None
            found.note_outage(finder, error)
        else:
            if masked is not None:
                rules.update(masked.names)
                yield index, Change(value=masked.data)


def _rejected(why: str, sensitive: Sensitive, records: int) -> Rejected:
    text = f"The batch may have sensitive fields ({sensitive.first}) that cannot be masked: {why}."
    return Rejected(ErrorCode.INVALID_RECORD, Reason.RULE, text, records=records, rules=((sensitive.first, 0),))
