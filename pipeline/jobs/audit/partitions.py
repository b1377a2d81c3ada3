"""Validates partitions in several tasks each, each batch as of its append time or of one given moment.

The partition's clock is estimated first, from a reading of all its chunks, because later records help to date earlier
ones. Then each chunk is validated by its part of the clock. If a policy depends on earlier batches, one task validates
the whole partition in order.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.jobs.audit.findings import DDL, Findings
from sluicegate.pipeline.jobs.audit.partition_validator import PartitionValidator
from sluicegate.pipeline.jobs.audit.policies import Policies, looks_back
from sluicegate.pipeline.jobs.profile.clock import Clock
from sluicegate.pipeline.jobs.profile.damage import partition_clock
from sluicegate.pipeline.jobs.profile.reading import SCHEMA, Reading, count_timestamps
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source.chunks import Chunk, cut, over_partitions, read_chunk
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.pipeline.source.tasks import begin_task, over, tasks_at_most
from sluicegate.protocol.records.record_batch import LOG_APPEND_TIME

MomentOf = Callable[[StoredBatch], int]
"""Returns ms since 1970."""
_MILLISECONDS = re.compile(r"\d{12,15}")


class BadMoment(ValueError):
    """The value of --as-of is invalid; the text lists valid ones."""


def moment_from(text: str, now_ms: int) -> int:
    """Return --as-of in ms since 1970: `now`, such a number, or a date with or without a time (UTC by default). Raises
    BadMoment.
    """
    if text == "now":
        return now_ms
    if _MILLISECONDS.fullmatch(text):
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadMoment(
            f"--as-of: expected now, a date (2026-11-30), a moment (2026-11-30T12:00:00Z) or milliseconds since 1970, "
            f"found {text!r}"
        ) from None
    return int((found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp() * 1000)


def always(moment_ms: int) -> MomentOf:
    """Return the same moment for all batches."""
    return lambda _batch: moment_ms


def when_appended(clock: Clock) -> MomentOf:
    """Return the broker's time (LogAppendTime), or the partition's clock at the batch's last record: a batch is sent
    when its last record was added.
    """
    offsets, times = clock.offsets, clock.times

    def moment(batch: StoredBatch) -> int:
        header = batch.header
        if header is not None and header.attributes & LOG_APPEND_TIME:
            return header.max_timestamp
        behind = int(np.searchsorted(offsets, batch.last_offset, side="right"))
        if behind == 0:
            return int(times[0])
        before = int(times[behind - 1])
        if behind == len(offsets):
            return before
        gone = batch.last_offset - int(offsets[behind - 1])
        return before + (int(times[behind]) - before) * gone // int(offsets[behind] - offsets[behind - 1])

    return moment


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
    """Return the rows of `sluicegate.pipeline.jobs.audit.findings` for each chunk.

    `as_of_ms` (ms): the moment as of which everything is validated; None: each batch as of its append.
    """
    rulebook, partitions = policies.rulebook(), cut(ranges, tasks_at_most(spark))

    def validated_in(its: Sequence[Chunk]) -> Sequence[Chunk]:
        whole = its[0].whole
        return [Chunk(whole, whole.start, whole.end)] if looks_back(rulebook.of(whole.of.topic)) else its

    def read(chunk: Chunk) -> pa.Table:
        return count_timestamps(options, chunk, now_ms)

    audit = _auditor(options, policies, samples)
    if as_of_ms is not None:
        chunks = [chunk for its in partitions for chunk in validated_in(its)]
        return over(spark, chunks, lambda chunk: chunk.size, lambda chunk: audit(chunk, always(as_of_ms)), DDL)
    alone = [its[0] for its in partitions if len(its) == 1]
    large = [its for its in partitions if len(its) > 1]
    at_once = over(
        spark,
        alone,
        lambda chunk: chunk.size,
        lambda chunk: audit(chunk, when_appended(_clock(read(chunk), now_ms))),
        DDL,
    )
    if not large:
        return at_once
    chunks = [chunk for its in large for chunk in validated_in(its)]
    clocks = over_partitions(
        spark, large, read, SCHEMA, lambda whole, found: [_clocks(_clock(found, now_ms), whole, chunks)], _CLOCKS_DDL
    )
    dealt = clocks.repartition(min(len(chunks), tasks_at_most(spark)))
    in_chunks = dealt.mapInArrow(lambda batches: _by_their_clocks(batches, chunks, audit), DDL)
    return at_once.union(in_chunks) if alone else in_chunks


def _auditor(options: SourceOptions, policies: Policies, samples: int | None) -> Callable[[Chunk, MomentOf], Rows]:
    def audit_chunk(chunk: Chunk, moment_of: MomentOf) -> Rows:
        of = chunk.whole.of
        validator, findings = PartitionValidator(of, policies.rulebook(), policies.limits), Findings(of, samples)

        def take(batch: StoredBatch) -> None:
            moment = moment_of(batch)
            findings.add(batch, validator.validate(batch, moment), moment)

        found: Rows = findings.table(read_chunk(options, chunk, take)).to_batches()
        return found

    return audit_chunk


def _clock(found: pa.Table, now_ms: int) -> Clock:
    clock = partition_clock(Reading.of(found).rows, now_ms)
    return clock if clock is not None else Clock.fixed_at(now_ms)


def _clocks(clock: Clock, whole: OffsetRange, chunks: Sequence[Chunk]) -> pa.RecordBatch:
    """Return for each of the partition's chunks the part of the clock that dates its batches."""
    its = [(number, chunk) for number, chunk in enumerate(chunks) if chunk.whole == whole]
    rows = [{"number": number} | _part(clock, chunk) for number, chunk in its]
    return pa.RecordBatch.from_pylist(rows, _CLOCKS)


def _part(clock: Clock, chunk: Chunk) -> dict[str, list[int]]:
    """Return the clock from the last point at or before the chunk to the first after it."""
    first = max(int(np.searchsorted(clock.offsets, chunk.start, side="right")) - 1, 0)
    end = len(clock.offsets)
    if chunk.end < chunk.whole.end:
        end = int(np.searchsorted(clock.offsets, chunk.end - 1, side="right")) + 1
    return {"offsets": clock.offsets[first:end].tolist(), "times": clock.times[first:end].tolist()}


def _by_their_clocks(
    batches: Iterable[pa.RecordBatch], chunks: Sequence[Chunk], audit: Callable[[Chunk, MomentOf], Rows]
) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        for number, offsets, times in zip(*batch.select(_CLOCKS.names).columns, strict=True):
            clock = Clock(*(column.values.to_numpy() for column in (offsets, times)))
            yield from audit(chunks[number.as_py()], when_appended(clock))
