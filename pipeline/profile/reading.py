"""A piece of a partition read into a tally; and what that found as a table, to be put together with other pieces'."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.profile import tally
from sluicegate.pipeline.profile.tally import Tally
from sluicegate.pipeline.source.decoding import BatchDecoder, BrokenRecords
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.pipeline.source.pieces import Gone, Piece, joined, read_piece

SCHEMA = pa.schema([*tally.SCHEMA, ("gone_from", pa.int64()), ("gone_to", pa.int64()), ("largest", pa.int64())])
"""A tally's rows; and rows of which only `gone_from` and `gone_to`, or `largest`, is not null."""
_NOTHING_IS_LARGE = 1 << 40


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of a piece of a partition, or of all its pieces: its tally, the offsets that were `gone` before they
    could be read, and the bytes of its largest record, where one is as large as was asked about, else 0.
    """

    rows: pa.Table
    gone: Gone
    largest: int

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
        )

    def as_table(self) -> pa.Table:
        """To be read by `of`."""
        told = [{"gone_from": first, "gone_to": end} for first, end in self.gone]
        told += [{"largest": self.largest}] if self.largest else []
        return pa.concat_tables([self.rows, pa.Table.from_pylist(told, SCHEMA)], promote_options="default")


def read_into_tally(
    options: SourceOptions,
    piece: Piece,
    now_ms: int,
    epoch_ms: int | None = None,
    large_bytes: int = _NOTHING_IS_LARGE,
) -> pa.Table:
    """A table for `Reading.of`; what retention deletes meanwhile is passed over and told. Raises BrokenRecords,
    TopicTrouble and BrokerUnreachable.
    """
    whole, largest = piece.whole, 0
    decoder, rows = BatchDecoder(), Tally(whole, now_ms, epoch_ms)

    def take(batch: StoredBatch) -> None:
        nonlocal largest
        rows.enter(piece.place(batch))
        is_whole = batch.first_offset >= whole.start and batch.last_offset < whole.end
        alike = decoder.add_up(batch) if is_whole and rows.expects_alike else None
        if alike is None or not rows.add_alike(*alike, batch.last_offset):
            rows.add(decoder.decode(batch), whole.start, whole.end)
        if decoder.plain_bytes >= large_bytes:
            largest = max(largest, decoder.decode(batch).largest_record)

    try:
        gone = read_piece(options, piece, take)
    except BrokenRecords as error:
        raise BrokenRecords(f"{whole.of}: {error}") from error
    return Reading(rows.table(), gone, largest).as_table()
