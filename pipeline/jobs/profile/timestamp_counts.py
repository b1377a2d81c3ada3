"""Aggregates a partition's records while they are read: similar records that are near each other become one row.

Records are similar if they have the same kind of timestamp, producer, codec and minute. The minute is converted from
other units; for implausible times the number of digits and the likely unit replace it. Records are near each other if
they are in the same block of 65,536 offsets, and the plausible times around them are in the same ten minutes. The
position of each row therefore still dates its append. Valid records in order become one row for each minute and
producer. Batches with widely spread times are aggregated into longer spans once a block has used its share of a million
such records.

A block's rows depend only on the block. A partition that several tasks aggregate therefore has the same rows as a
partition that one task aggregates (`sluicegate.pipeline.source.chunks`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sluicegate.pipeline.jobs.profile.kinds import (
    UNITS,
    Groups,
    LikelyUnits,
    TimestampKind,
    TimestampKinds,
    in_milliseconds,
    is_plausible_time,
)
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.source.chunks import BLOCK_OFFSETS
from sluicegate.pipeline.source.decoding import BatchFacts, DecodedBatch
from sluicegate.protocol.records.columns import BatchTotals
from sluicegate.protocol.records.record_batch import NO_TIMESTAMP

MINUTE_MS = 60_000
_AROUND_MINUTES = 10
_ROWS_AT_ONCE = 64 * 1024
_SPANS_A_BATCH = 16
_MOST_EXACT_ROWS = 1_000_000  # per partition, about 120 MB; only widely spread times reach this number
_LAST_PLAUSIBLE = max(UNITS)
_DIGITS_APART = 100  # more than the number of likely units
_UNLIKE_AT_MOST, _TRIED_AGAIN_AFTER = 2, 64
_TIMESTAMP, _KEY_SIZE, _VALUE_SIZE = 1, 3, 5
_BY_BROKER = 1

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
        ("first_place", pa.int64()),
        ("last_place", pa.int64()),
        ("block", pa.int64()),
    ]
)
"""`first_place` and `last_place` are the base offsets of the first and the last batch."""
DoubtsOf = Callable[[NDArray[np.int64], int], NDArray[np.int8]]
"""Returns the `TimestampDoubt` of each time in a batch with this base offset."""
DOUBTS_FROM = len(TimestampKind) - 1
"""A higher kind is the sum of this number and the `TimestampDoubt` of a time in milliseconds."""


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
    first_place: int
    last_place: int
    block: int


class _Columns(NamedTuple):
    """Columns of a group of records."""

    kinds: NDArray[np.int8]
    minutes: NDArray[np.int64]
    times: NDArray[np.int64]
    offsets: NDArray[np.int64]
    key_sizes: NDArray[np.int64]
    sizes: NDArray[np.int64]
    places: NDArray[np.int64]


_Producer = tuple[int, str, int]
"""(producer id, codec, timestamp type)"""
_Key = tuple[int, int, int, int, str, int]
"""(surrounding ten minutes, kind, minute, producer id, codec, timestamp type)"""


class TimestampCounts:
    """Counts the records in some blocks of a partition by timestamp.

    For each batch, in order, call `enter`, then add the batch. `whole` is the range of the partition that all tasks
    together read. `doubts_of` separates records by their `TimestampDoubt`, in kinds above `DOUBTS_FROM`.
    """

    def __init__(
        self, whole: OffsetRange, now_ms: int, epoch_ms: int | None = None, doubts_of: DoubtsOf | None = None
    ) -> None:
        self._doubts_of = doubts_of
        self._whole = whole
        blocks = (whole.end - 1) // BLOCK_OFFSETS - whole.start // BLOCK_OFFSETS + 1
        self._far_at_most = _MOST_EXACT_ROWS // max(blocks, 1)
        self._kinds = TimestampKinds(now_ms, epoch_ms)
        self._likely_units = LikelyUnits(now_ms)
        self._now_minute = now_ms // MINUTE_MS
        self._rows: dict[_Key, _Row] = {}
        self._closed: list[tuple[_Key, _Row]] = []
        self._packed: list[pa.RecordBatch] = []
        self._block = -1
        self._around = 0
        self._far = 0
        self._pending: dict[_Producer, list[_Columns]] = {}
        self._pending_batches: dict[_Producer, tuple[int, int]] = {}
        self._unlike = 0

    def enter(self, last_offset: int) -> None:
        """Select a batch's block, given the batch's last offset. Call this before adding the batch."""
        block = last_offset // BLOCK_OFFSETS
        if block != self._block:
            self._close()
            self._block, self._around, self._far, self._unlike = block, 0, 0, 0

    @property
    def expects_alike(self) -> bool:
        """Return whether to try `add_alike` for the next batch.

        It is tried if it succeeded for recent batches, and occasionally otherwise.
        """
        if self._doubts_of is not None:
            return False
        return self._unlike < _UNLIKE_AT_MOST or self._unlike % _TRIED_AGAIN_AFTER == 0

    def add_alike(self, facts: BatchFacts, totals: BatchTotals, last_offset: int) -> bool:
        """Add a whole batch of similar records. If the records differ, return False without adding the batch."""
        minute = totals.earliest // MINUTE_MS
        if minute != totals.latest // MINUTE_MS or not self._kinds.all_plausible(totals.earliest, totals.latest):
            return False
        self._unlike = 0
        self._note(minute)
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
            facts.base_offset,
            facts.base_offset,
            self._block,
        )
        self._put((self._around, 0, minute, *_producer_of(facts)), row)
        return True

    def add(self, batch: DecodedBatch, start: int, end: int) -> None:
        """Add the records with offsets in [start, end)."""
        self._unlike += 1
        first, last = (int(place) for place in np.searchsorted(batch.offset, (start, end)))
        if first == last:
            return
        offsets = batch.offset[first:last]
        times = batch.columns[_TIMESTAMP, first:last]
        earliest, latest = int(times.min()), int(times.max())
        is_far = latest - earliest > _SPANS_A_BATCH * MINUTE_MS
        in_spans = is_far and self._far >= self._far_at_most
        self._far += (last - first) * is_far
        if not in_spans and self._kinds.all_plausible(earliest, latest):
            self._add_later(batch, first, last)
            return
        key_sizes = batch.columns[_KEY_SIZE, first:last]
        sizes = np.maximum(key_sizes, 0) + np.maximum(batch.columns[_VALUE_SIZE, first:last], 0)
        kinds = self._kinds.kinds_of(times)
        plausible = is_plausible_time(kinds)
        minutes = np.where(plausible, in_milliseconds(times, kinds) // MINUTE_MS, 0)
        if in_spans:
            minutes = _spans(minutes, plausible)
        minutes[times == NO_TIMESTAMP] = NO_TIMESTAMP  # no limit rejects it, unlike other negative times
        odd = kinds == TimestampKind.IMPLAUSIBLE
        if odd.any():
            minutes[odd] = self._shapes_of(times[odd])
        facts = batch.facts
        counts_batch = (1, facts.size) if first == 0 else (0, 0)  # a batch's bytes are counted with its first records
        self._add_doubts(kinds, times, facts)
        places = np.full(len(times), facts.base_offset, np.int64)
        columns = _Columns(kinds, minutes, times, offsets, key_sizes, sizes, places)
        self._add_groups(_producer_of(facts), columns, counts_batch)

    def _add_doubts(self, kinds: NDArray[np.int8], times: NDArray[np.int64], facts: BatchFacts) -> None:
        """Change the kinds of a producer's times that are perhaps or certainly ahead or behind."""
        if self._doubts_of is None or facts.timestamp_type == _BY_BROKER:
            return
        doubts = self._doubts_of(times, facts.base_offset)
        doubted = (kinds == TimestampKind.MILLISECONDS) & (doubts != 0)
        kinds[doubted] = doubts[doubted] + DOUBTS_FROM

    def _add_later(self, batch: DecodedBatch, first: int, last: int) -> None:
        """Collect plausible records of several minutes until their block ends.

        Aggregating a hundred small unordered batches costs hardly more than aggregating one.
        """
        rows = batch.columns[:, first:last].copy()
        self._note(int(rows[_TIMESTAMP, -1]) // MINUTE_MS)
        sizes = np.maximum(rows[_KEY_SIZE], 0) + np.maximum(rows[_VALUE_SIZE], 0)
        minutes = rows[_TIMESTAMP] // MINUTE_MS
        kinds = np.zeros(last - first, np.int8)
        self._add_doubts(kinds, rows[_TIMESTAMP], batch.facts)
        places = np.full(last - first, batch.facts.base_offset, np.int64)
        kept = self._pending.setdefault(_producer_of(batch.facts), [])
        kept.append(_Columns(kinds, minutes, rows[_TIMESTAMP], rows[0], rows[_KEY_SIZE], sizes, places))
        if first == 0:
            producer = _producer_of(batch.facts)
            count, filled = self._pending_batches.get(producer, (0, 0))
            self._pending_batches[producer] = (count + 1, filled + batch.facts.size)

    def _add_pending(self) -> None:
        pending, self._pending = self._pending, {}
        batches, self._pending_batches = self._pending_batches, {}
        around = self._around
        for producer, kept in pending.items():
            joined = _Columns(*(np.concatenate(column) for column in zip(*kept, strict=True)))
            self._add_groups(producer, joined, batches.get(producer, (0, 0)))
        self._around = around

    def _add_groups(self, producer: _Producer, columns: _Columns, batches: tuple[int, int]) -> None:
        """Add groups of records. `batches` contains the number of batches and their stored bytes."""
        groups = Groups(columns.kinds, columns.minutes)
        found = (
            groups.first_of(columns.kinds),
            groups.first_of(columns.minutes),
            groups.sizes,
            groups.sum(columns.key_sizes < 0),
            groups.sum(columns.sizes),
            groups.least(columns.times),
            groups.most(columns.times),
            groups.first_of(columns.offsets),
            groups.last_values(columns.offsets),
            groups.first_of(columns.places),
            groups.last_values(columns.places),
            np.full(len(groups.sizes), self._block, np.int64),
        )
        rows = zip(*(column.tolist() for column in found), strict=True)
        for kind, minute, records, null_keys, filled, *numbers in rows:
            self._note(minute if kind <= _LAST_PLAUSIBLE else self._now_minute + 1)
            row = _Row(records, null_keys, filled, *batches, *numbers)
            batches = (0, 0)
            self._put((self._around, kind, minute, *producer), row)

    def _shapes_of(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the groups of implausible numbers, by number of digits and likely unit."""
        return np.asarray(np.log10(times).astype(np.int64) * _DIGITS_APART + self._likely_units.units_of(times))

    def table(self) -> pa.Table:
        """Return all rows, roughly in offset order."""
        self._close()
        self._pack()
        return pa.Table.from_batches(self._packed, SCHEMA)

    def _note(self, minute: int) -> None:
        if minute <= self._now_minute:
            self._around = minute // _AROUND_MINUTES

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
        # Collected records may precede records that were added directly.
        row.first_offset = min(row.first_offset, more.first_offset)
        row.last_offset = max(row.last_offset, more.last_offset)
        row.first_place = min(row.first_place, more.first_place)
        row.last_place = max(row.last_place, more.last_place)

    def _close(self) -> None:
        self._add_pending()
        self._closed += self._rows.items()
        self._rows = {}
        if len(self._closed) >= _ROWS_AT_ONCE:
            self._pack()

    def _pack(self) -> None:
        """Convert closed rows to columns, which use a fifth of the memory."""
        if not self._closed:
            return
        rows = [
            (
                self._whole.of.topic,
                self._whole.of.partition,
                key[1],
                *key[3:],
                *(getattr(row, name) for name in _Row.__slots__),
            )
            for key, row in self._closed
        ]
        self._closed = []
        columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
        self._packed.append(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))


def _producer_of(facts: BatchFacts) -> _Producer:
    return facts.producer_id, facts.codec, facts.timestamp_type


def _spans(minutes: NDArray[np.int64], plausible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the minutes, or longer spans if a batch's times are widely spread."""
    if not plausible.any():
        return minutes
    spread = int(np.ptp(minutes[plausible]))
    if spread <= _SPANS_A_BATCH:
        return minutes
    span = 1 << (spread // _SPANS_A_BATCH).bit_length()
    return np.asarray(minutes // span * span)
