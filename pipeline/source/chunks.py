"""A partition read by several tasks: where it is cut, and which batches are each one's.

Cuts lie between blocks of offsets, which are the same whoever reads. A batch may lie across a cut, and nobody knows
where before it is read: it belongs to the piece that its last offset is in. That offset a batch keeps whatever
compaction takes out of it, and of a compressed message of magic 0 or 1 it is the only one that can be seen. A broker
that is asked for a piece's start answers from the batch on that ends there or later. So each batch is one piece's, and
none is decompressed twice.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sluicegate.pipeline.kafka.cluster import Cluster, OffsetRange
from sluicegate.pipeline.kafka.cluster_pool import kept_cluster
from sluicegate.pipeline.kafka.fetching import DataLoss, StoredBatch, stored_batches
from sluicegate.pipeline.source.options import SourceOptions

BLOCK_OFFSETS = 65_536
_BLOCKS_AT_LEAST = 4  # what is less takes less time than a task of its own

Gone = tuple[tuple[int, int], ...]
"""Stretches of offsets, [first, end) each, that retention took before they could be read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Of all that is read of a partition, `whole`, the batches that end in [start, end). What lies behind the end of
    `whole` in its last batch is of the last piece, and not wanted.
    """

    whole: OffsetRange
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets."""
        return self.end - self.start

    @property
    def range(self) -> OffsetRange:
        """The same as a range, for who reads records instead of batches."""
        return OffsetRange(self.whole.of, self.start, self.end)

    def place(self, batch: StoredBatch) -> int:
        """By which offset the batch belongs to a piece."""
        return min(batch.last_offset, self.whole.end - 1)


def cut(ranges: Sequence[OffsetRange], tasks: int) -> list[list[Piece]]:
    """Each range's pieces in their order: those ranges cut that hold more than their share of so many tasks, where that
    is worth a task.
    """
    share = max(sum(each.size for each in ranges) // tasks, _BLOCKS_AT_LEAST * BLOCK_OFFSETS)
    return [_pieces(each, max(1, round(each.size / share))) for each in ranges]


def _pieces(whole: OffsetRange, count: int) -> list[Piece]:
    between = (whole.start + whole.size * i // count for i in range(1, count))
    cuts = sorted({block * BLOCK_OFFSETS for block in (offset // BLOCK_OFFSETS for offset in between)})
    ends = [*(offset for offset in cuts if whole.start < offset < whole.end), whole.end]
    return [Piece(whole, start, end) for start, end in pairwise([whole.start, *ends])]


def read_piece(options: SourceOptions, piece: Piece, take: Callable[[StoredBatch], None]) -> Gone:
    """`take` each batch of a piece in its order; what retention deletes meanwhile is passed over and returned. Raises
    TopicTrouble and BrokerUnreachable.
    """
    gone: list[tuple[int, int]] = []
    start = piece.start
    with kept_cluster(options.bootstrap, options.settings) as cluster:
        while True:
            try:
                _read(cluster, options, piece, start, take)
                return tuple(gone)
            except DataLoss as loss:
                gone.append((loss.first, loss.found))
                start = loss.found


def _read(
    cluster: Cluster, options: SourceOptions, piece: Piece, start: int, take: Callable[[StoredBatch], None]
) -> None:
    for batch in stored_batches(cluster, OffsetRange(piece.whole.of, start, piece.end), options.committed):
        if piece.place(batch) >= piece.end:
            return
        take(batch)


def joined(gone: Iterable[tuple[int, int]]) -> Gone:
    """Those of a partition's pieces, in their order, as who reads all of it would tell them."""
    found: list[tuple[int, int]] = []
    for first, end in gone:
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], end)
        else:
            found.append((first, end))
    return tuple(found)
