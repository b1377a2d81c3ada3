"""Reads a chunk of a partition into timestamp counts, a table that can be combined with the tables of other chunks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluicegate.pipeline.jobs.profile import timestamp_counts
from sluicegate.pipeline.jobs.profile.timestamp_counts import DoubtsOf, TimestampCounts
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source.chunks import Chunk, MissingRanges, join_ranges, read_chunk
from sluicegate.pipeline.source.decoding import (
    BatchDecoder,
    BrokenRecords,
    Unreadable,
    UnreadableRanges,
    join_adjacent,
    unreadable,
)
from sluicegate.pipeline.source.options import SourceOptions

UNREADABLE = {
    "unreadable_from": "first_offset",
    "unreadable_to": "last_offset",
    "unreadable_batches": "batches",
    "unreadable_bytes": "stored_bytes",
    "reason": "reason",
}
"""Columns, and the field of `Unreadable` that each column contains."""
NOTE_TYPES = {
    name: pa.string() if name == "reason" else pa.int64() for name in ("missing_from", "missing_to", *UNREADABLE)
}
SCHEMA = pa.schema([*timestamp_counts.SCHEMA, *NOTE_TYPES.items(), ("largest", pa.int64())])
"""The rows of timestamp counts, and rows for gaps (`missing_from`, `missing_to`), for the `largest` record and for
unreadable batches. In these rows the other columns are null.
"""
_NOTHING_IS_LARGE = 1 << 40


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a chunk, or all chunks of a partition.

    It consists of the counts, the offsets that were deleted before they could be read (`missing`), the bytes of the
    largest record (0 if below the limit), and `unreadable` batches.
    """

    rows: pa.Table
    missing: MissingRanges
    largest: int
    unreadable: tuple[Unreadable, ...] = ()

    @classmethod
    def from_table(cls, found: pa.Table) -> "Reading":
        """Combine the concatenated tables of a partition's chunks in order, as if one task had read the partition."""
        notes = found.filter(pc.is_null(found["kind"]))
        largest = pc.max(notes["largest"]).as_py()
        missing = notes.filter(pc.is_valid(notes["missing_from"])).select(["missing_from", "missing_to"])
        return cls(
            found.filter(pc.is_valid(found["kind"])).select(timestamp_counts.SCHEMA.names),
            join_ranges([(stretch["missing_from"], stretch["missing_to"]) for stretch in missing.to_pylist()]),
            largest if largest is not None else 0,
            join_adjacent(unreadable_of(row) for row in notes.filter(pc.is_valid(notes["reason"])).to_pylist()),
        )

    def as_table(self) -> pa.Table:
        """Return the table that `from_table` reads."""
        notes = [{"missing_from": first, "missing_to": end} for first, end in self.missing]
        notes += [{"largest": self.largest}] if self.largest else []
        notes += [unreadable_row(each) for each in self.unreadable]
        return pa.concat_tables([self.rows, pa.Table.from_pylist(notes, SCHEMA)], promote_options="default")


def unreadable_row(each: Unreadable) -> dict[str, Any]:
    """Return an entry as a row, by the names of its columns."""
    return {column: getattr(each, name) for column, name in UNREADABLE.items()}


def unreadable_of(row: Mapping[str, Any]) -> Unreadable:
    """Return the entry in a row that `unreadable_row` made."""
    return Unreadable(**{name: row[column] for column, name in UNREADABLE.items()})


def count_timestamps(
    options: SourceOptions,
    chunk: Chunk,
    now_ms: int,
    epoch_ms: int | None = None,
    large_bytes: int = _NOTHING_IS_LARGE,
    doubts_of: DoubtsOf | None = None,
) -> pa.Table:
    """Read a chunk, and return the table that `Reading.from_table` reads.

    Deleted ranges and unreadable batches are skipped and reported. For `doubts_of` see `TimestampCounts`. Raises
    TopicTrouble and BrokerUnreachable.
    """
    whole, largest = chunk.whole, 0
    decoder, rows = BatchDecoder(), TimestampCounts(whole, now_ms, epoch_ms, doubts_of)
    broken = UnreadableRanges()

    def take(batch: StoredBatch) -> None:
        nonlocal largest
        rows.enter(chunk.place(batch))
        try:
            is_whole = batch.first_offset >= whole.start and batch.last_offset < whole.end
            alike = decoder.add_up(batch) if is_whole and rows.expects_alike else None
            if alike is None or not rows.add_alike(*alike, batch.last_offset):
                rows.add(decoder.decode(batch), whole.start, whole.end)
        except BrokenRecords as error:
            broken.add(unreadable(batch, error))
            return
        if decoder.plain_bytes >= large_bytes:
            largest = max(largest, decoder.decode(batch).largest_record)

    missing = read_chunk(options, chunk, take)
    return Reading(rows.table(), missing, largest, tuple(broken.found)).as_table()


def reader_again(
    options: SourceOptions, whole: OffsetRange, now_ms: int, epoch_ms: int | None
) -> Callable[[int, int, DoubtsOf], pa.Table]:
    """Return the function with which `assess_timestamps` reads a part of a partition again.

    The returned function raises the errors of `count_timestamps`.
    """

    def read_again(start: int, end: int, doubts_of: DoubtsOf) -> pa.Table:
        part = Chunk(whole, max(start, whole.start), min(end, whole.end))
        return Reading.from_table(count_timestamps(options, part, now_ms, epoch_ms, doubts_of=doubts_of)).rows

    return read_again
