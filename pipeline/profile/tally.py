"""Records of one partition added up while they are read: one row for those that are alike and near each other.

Alike: the same kind of timestamp, the same minute, producer and codec. Near: within the same 65,536 offsets, and
while healthy times around them are in the same ten minutes, so that each row's place among the others still tells
about when it was appended. What is in order and healthy comes to one row a minute and producer. A partition that has
come to a million rows is added up in longer spans where its times are far apart.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.kafka.cluster import TopicPartition
from pipeline.profile.groups import Groups
from pipeline.profile.kinds import Kind, Kinds
from pipeline.source.decoding import BatchFacts, DecodedBatch
from protocol.records.totals import Totals

MINUTE_MS = 60_000
_AROUND_MINUTES = 10
_BLOCK_SHIFT = 16
_ROWS_AT_ONCE = 64 * 1024
_SPANS_A_BATCH = 16
_MOST_EXACT_ROWS = 1_000_000  # some 120 MB; only times from far and wide make so many
_TIMESTAMP, _KEY_SIZE, _VALUE_SIZE = 1, 3, 5

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("kind", pa.int32()),
        ("producer_id", pa.int64()),
        ("codec", pa.string()),
        ("timestamp_type", pa.int32()),
        ("records", pa.int64()),
        ("null_keys", pa.int64()),
        ("bytes", pa.int64()),
        ("batches", pa.int64()),
        ("stored_bytes", pa.int64()),
        ("earliest", pa.int64()),
        ("latest", pa.int64()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
    ]
)


@dataclass(slots=True)
class _Row:
    records: int
    null_keys: int
    bytes: int
    batches: int
    stored_bytes: int
    earliest: int
    latest: int
    first_offset: int
    last_offset: int


_Key = tuple[int, int, int, int, str, int]
"""(ten minutes around, kind, minute, producer id, codec, timestamp type)"""


class Tally:
    """Of one partition; add its batches in their order."""

    def __init__(self, of: TopicPartition, now_ms: int) -> None:
        self._of = of
        self._kinds = Kinds(now_ms)
        self._now_minute = now_ms // MINUTE_MS
        self._rows: dict[_Key, _Row] = {}
        self._closed: list[tuple[_Key, _Row]] = []
        self._packed: list[pa.RecordBatch] = []
        self._packed_rows = 0
        self._block = -1
        self._around = 0

    def add_alike(self, facts: BatchFacts, totals: Totals, last_offset: int) -> bool:
        """Add a whole batch whose records are alike; False, and nothing added, when they are not."""
        minute = totals.earliest // MINUTE_MS
        if minute != totals.latest // MINUTE_MS or not self._kinds.all_plausible(totals.earliest, totals.latest):
            return False
        self._enter(facts.base_offset, minute)
        row = _Row(
            totals.records,
            totals.null_keys,
            totals.bytes,
            1,
            facts.size,
            totals.earliest,
            totals.latest,
            facts.base_offset,
            last_offset,
        )
        self._put((self._around, 0, minute, facts.producer_id, facts.codec, facts.timestamp_type), row)
        return True

    def add(self, batch: DecodedBatch, start: int, end: int) -> None:
        """Add the records whose offsets are in [start, end)."""
        first, last = (int(place) for place in np.searchsorted(batch.offset, (start, end)))
        if first == last:
            return
        offsets = batch.offset[first:last]
        times = batch.columns[_TIMESTAMP, first:last]
        key_sizes = batch.columns[_KEY_SIZE, first:last]
        sizes = np.maximum(key_sizes, 0) + np.maximum(batch.columns[_VALUE_SIZE, first:last], 0)
        kinds = self._kinds.of(times)
        minutes = np.where(kinds == Kind.MILLISECONDS, times // MINUTE_MS, 0)
        if self._packed_rows > _MOST_EXACT_ROWS:
            minutes = _spans(minutes, kinds == Kind.MILLISECONDS)
        facts = batch.facts
        groups = Groups(kinds, minutes)
        columns = (
            groups.first_of(kinds),
            groups.first_of(minutes),
            groups.sizes,
            groups.sum(key_sizes < 0),
            groups.sum(sizes),
            groups.least(times),
            groups.most(times),
            groups.first_of(offsets),
            groups.last_of(offsets),
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        counts_batch = first == 0  # its bytes stand with its first records
        for kind, minute, records, null_keys, filled, earliest, latest, first_offset, last_offset in rows:
            self._enter(first_offset, minute if kind == Kind.MILLISECONDS else self._now_minute + 1)
            batches, stored = (1, facts.size) if counts_batch else (0, 0)
            counts_batch = False
            row = _Row(records, null_keys, filled, batches, stored, earliest, latest, first_offset, last_offset)
            self._put((self._around, kind, minute, facts.producer_id, facts.codec, facts.timestamp_type), row)

    def table(self) -> pa.Table:
        """All rows, in about the order of their offsets."""
        self._close()
        self._pack()
        return pa.Table.from_batches(self._packed, SCHEMA)

    def _enter(self, offset: int, minute: int) -> None:
        """Note where we are; rows of the blocks of offsets before are closed."""
        if minute <= self._now_minute:
            self._around = minute // _AROUND_MINUTES
        if offset >> _BLOCK_SHIFT != self._block or len(self._rows) > _ROWS_AT_ONCE:
            self._close()
            self._block = offset >> _BLOCK_SHIFT

    def _put(self, key: _Key, more: _Row) -> None:
        row = self._rows.get(key)
        if row is None:
            self._rows[key] = more
            return
        row.records += more.records
        row.null_keys += more.null_keys
        row.bytes += more.bytes
        row.batches += more.batches
        row.stored_bytes += more.stored_bytes
        row.earliest = min(row.earliest, more.earliest)
        row.latest = max(row.latest, more.latest)
        row.last_offset = more.last_offset

    def _close(self) -> None:
        self._closed += self._rows.items()
        self._rows = {}
        if len(self._closed) >= _ROWS_AT_ONCE:
            self._pack()

    def _pack(self) -> None:
        """What is closed takes a fifth of the memory as columns."""
        if not self._closed:
            return
        rows = [
            (self._of.topic, self._of.partition, key[1], *key[3:], *(getattr(row, name) for name in _Row.__slots__))
            for key, row in self._closed
        ]
        self._packed_rows += len(self._closed)
        self._closed = []
        columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
        self._packed.append(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))


def _spans(minutes: NDArray[np.int64], in_ms: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The minutes, or where a batch has them from far and wide, spans of so many that it has few of them."""
    if not in_ms.any():
        return minutes
    spread = int(np.ptp(minutes[in_ms]))
    if spread <= _SPANS_A_BATCH:
        return minutes
    span = 1 << (spread // _SPANS_A_BATCH).bit_length()
    return np.asarray(minutes // span * span)
