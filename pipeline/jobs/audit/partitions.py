"""Partitions validated by several tasks each.

First a partition's clock is told, from a reading of all its pieces, because what comes later tells of what came before.
Then each piece is validated by its part of the clock. Where a policy looks at batches before the one that is
validated, the
whole partition is validated by one task, in its order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.jobs.audit.append_times import MomentOf, always, when_appended
from sluicegate.pipeline.jobs.audit.findings import DDL, Findings
from sluicegate.pipeline.jobs.audit.partition_validator import PartitionValidator
from sluicegate.pipeline.jobs.audit.policies import Policies, looks_back
from sluicegate.pipeline.jobs.profile.clock import Clock
from sluicegate.pipeline.jobs.profile.damage import partition_clock
from sluicegate.pipeline.jobs.profile.reading import SCHEMA, Reading, read_into_tally
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source.chunks import Piece, cut, read_piece
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.pipeline.source.task_start import begin_task
from sluicegate.pipeline.source.tasks import over, tasks_at_most
from sluicegate.pipeline.source.whole_partitions import over_partitions

Rows = list[pa.RecordBatch]
_CLOCKS_DDL = "number int, offsets array<bigint>, times array<bigint>"
_CLOCKS = pa.schema([("number", pa.int32()), ("offsets", pa.list_(pa.int64())), ("times", pa.list_(pa.int64()))])


def validated_rows(
    spark: SparkSession,
    options: SourceOptions,
    ranges: Sequence[OffsetRange],
    policies: Policies,
    now_ms: int,
    as_of_ms: int | None,
    samples: int | None,
) -> DataFrame:
    """Return the rows of `sluicegate.pipeline.jobs.audit.findings`, of each piece by itself.

    `as_of_ms` (ms): the moment by which all is validated; None: each batch by when it was appended.
    """
    rulebook, partitions = policies.rulebook(), cut(ranges, tasks_at_most(spark))

    def validated_in(its: Sequence[Piece]) -> Sequence[Piece]:
        whole = its[0].whole
        return [Piece(whole, whole.start, whole.end)] if looks_back(rulebook.of(whole.of.topic)) else its

    def read(piece: Piece) -> pa.Table:
        return read_into_tally(options, piece, now_ms)

    audit = _validate(options, policies, samples)
    if as_of_ms is not None:
        pieces = [piece for its in partitions for piece in validated_in(its)]
        return over(spark, pieces, lambda piece: piece.size, lambda piece: audit(piece, always(as_of_ms)), DDL)
    alone = [its[0] for its in partitions if len(its) == 1]
    large = [its for its in partitions if len(its) > 1]
    at_once = over(
        spark,
        alone,
        lambda piece: piece.size,
        lambda piece: audit(piece, when_appended(_clock(read(piece), now_ms))),
        DDL,
    )
    if not large:
        return at_once
    pieces = [piece for its in large for piece in validated_in(its)]
    clocks = over_partitions(
        spark, large, read, SCHEMA, lambda whole, found: [_clocks(_clock(found, now_ms), whole, pieces)], _CLOCKS_DDL
    )
    dealt = clocks.repartition(min(len(pieces), tasks_at_most(spark)))
    in_pieces = dealt.mapInArrow(lambda batches: _by_their_clocks(batches, pieces, audit), DDL)
    return at_once.union(in_pieces) if alone else in_pieces


def _validate(options: SourceOptions, policies: Policies, samples: int | None) -> Callable[[Piece, MomentOf], Rows]:
    def audit(piece: Piece, moment_of: MomentOf) -> Rows:
        of = piece.whole.of
        validated, findings = PartitionValidator(of, policies.rulebook(), policies.limits), Findings(of, samples)

        def take(batch: StoredBatch) -> None:
            moment = moment_of(batch)
            findings.add(batch, validated.audit(batch, moment), moment)

        found: Rows = findings.table(read_piece(options, piece, take)).to_batches()
        return found

    return audit


def _clock(found: pa.Table, now_ms: int) -> Clock:
    clock = partition_clock(Reading.of(found).rows, now_ms)
    return clock if clock is not None else Clock.standing_at(now_ms)


def _clocks(clock: Clock, whole: OffsetRange, pieces: Sequence[Piece]) -> pa.RecordBatch:
    """For each of the partition's pieces the part of the clock that its batches are told the time by."""
    its = [(number, piece) for number, piece in enumerate(pieces) if piece.whole == whole]
    rows = [{"number": number} | _part(clock, piece) for number, piece in its]
    return pa.RecordBatch.from_pylist(rows, _CLOCKS)


def _part(clock: Clock, piece: Piece) -> dict[str, list[int]]:
    """From the last point at or before the piece to the first behind it."""
    first = max(int(np.searchsorted(clock.offsets, piece.start, side="right")) - 1, 0)
    end = len(clock.offsets)
    if piece.end < piece.whole.end:
        end = int(np.searchsorted(clock.offsets, piece.end - 1, side="right")) + 1
    return {"offsets": clock.offsets[first:end].tolist(), "times": clock.times[first:end].tolist()}


def _by_their_clocks(
    batches: Iterable[pa.RecordBatch], pieces: Sequence[Piece], audit: Callable[[Piece, MomentOf], Rows]
) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        for number, offsets, times in zip(*batch.select(_CLOCKS.names).columns, strict=True):
            clock = Clock(*(told.values.to_numpy() for told in (offsets, times)))
            yield from audit(pieces[number.as_py()], when_appended(clock))
