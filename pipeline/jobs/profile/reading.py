"""A piece of a partition read into a tally; and what that found as a table, to be put together with other pieces'."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluicegate.pipeline.jobs.profile import tally
from sluicegate.pipeline.jobs.profile.tally import Tally
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source.chunks import Gone, Piece, joined, read_piece
from sluicegate.pipeline.source.decoding import BatchDecoder, BrokenRecords
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.pipeline.source.unreadable import Stretches, Unreadable, in_stretches, unreadable

UNREADABLE = {
    "unreadable_from": "first_offset",
    "unreadable_to": "last_offset",
    "unreadable_batches": "batches",
    "unreadable_bytes": "stored_bytes",
    "why": "why",
}
"""Columns, and what of `Unreadable` they hold."""
TOLD_TYPES = {name: pa.string() if name == "why" else pa.int64() for name in ("gone_from", "gone_to", *UNREADABLE)}
SCHEMA = pa.schema([*tally.SCHEMA, *TOLD_TYPES.items(), ("largest", pa.int64())])
"""A tally's rows; and rows of which only `gone_from` and `gone_to`, or `largest`, or those of what is unreadable, are
not null.
"""
_NOTHING_IS_LARGE = 1 << 40


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of a piece of a partition, or of all its pieces: its tally, the offsets that were `gone` before they
    could be read, the bytes of its largest record, where one is as large as was asked about, else 0, and the batches
    that are `unreadable`.
    """

    rows: pa.Table
    gone: Gone
    largest: int
    unreadable: tuple[Unreadable, ...] = ()

    @classmethod
    def of(cls, found: pa.Table) -> "Reading":
        """From tables of a partition's pieces, in their order, behind each other: as if one task had read them all."""
        told = found.filter(pc.is_null(found["kind"]))
        largest = pc.max(told["largest"]).as_py()
        gone = told.filter(pc.is_valid(told["gone_from"])).select(["gone_from", "gone_to"])
        return cls(
            found.filter(pc.is_valid(found["kind"])).select(tally.SCHEMA.names),
            joined([(stretch["gone_from"], stretch["gone_to"]) for stretch in gone.to_pylist()]),
            largest if largest is not None else 0,
            in_stretches(unreadable_of(row) for row in told.filter(pc.is_valid(told["why"])).to_pylist()),
        )

    def as_table(self) -> pa.Table:
        """To be read by `of`."""
        told = [{"gone_from": first, "gone_to": end} for first, end in self.gone]
        told += [{"largest": self.largest}] if self.largest else []
        told += [unreadable_row(each) for each in self.unreadable]
        return pa.concat_tables([self.rows, pa.Table.from_pylist(told, SCHEMA)], promote_options="default")


def unreadable_row(each: Unreadable) -> dict[str, Any]:
    """By the names of columns."""
    return {column: getattr(each, name) for column, name in UNREADABLE.items()}


def unreadable_of(row: Mapping[str, Any]) -> Unreadable:
    """What `unreadable_row` was made from."""
    return Unreadable(**{name: row[column] for column, name in UNREADABLE.items()})


def read_into_tally(
    options: SourceOptions,
    piece: Piece,
    now_ms: int,
    epoch_ms: int | None = None,
    large_bytes: int = _NOTHING_IS_LARGE,
) -> pa.Table:
    """A table for `Reading.of`; what retention deletes meanwhile, and what cannot be read, is passed over and told.
    Raises TopicTrouble and BrokerUnreachable.
    """
    whole, largest = piece.whole, 0
    decoder, rows = BatchDecoder(), Tally(whole, now_ms, epoch_ms)
    broken = Stretches()

    def take(batch: StoredBatch) -> None:
        nonlocal largest
        rows.enter(piece.place(batch))
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

    gone = read_piece(options, piece, take)
    return Reading(rows.table(), gone, largest, tuple(broken.found)).as_table()
