"""Validates each partition in several tasks, every batch as of its append range or as of one given time.

All chunks of a partition are read first to estimate the ranges (`append_times`), because later records help to date
earlier ones. Then each chunk is validated with its part of the ranges. If a policy depends on earlier batches, one task
validates the whole partition in order.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.jobs.audit.findings import (
    DDL,
    AppendTimeRange,
    AuditFindings,
    UncertainRecords,
    bad_records,
    timed_reason,
)
from sluicegate.pipeline.jobs.audit.partition_validator import PartitionValidator, depends_on_earlier_batches
from sluicegate.pipeline.jobs.audit.policies import Policies
from sluicegate.pipeline.jobs.profile.append_times import AppendTimes, append_times, append_times_from
from sluicegate.pipeline.jobs.profile.reading import SCHEMA, Reading, count_timestamps
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source.chunks import Chunk, cut_ranges, map_partitions, read_chunk
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.pipeline.source.tasks import begin_task, map_in_tasks, tasks_at_most
from sluicegate.protocol.records.record_batch import LOG_APPEND_TIME
from sluicegate.validation.verdict import Reason

RangeOf = Callable[[StoredBatch], AppendTimeRange]
"""A function that returns the range in which a batch was appended."""
_AFTER_ALL = 2**62


def same_moment_for_all(moment_ms: int) -> RangeOf:
    """Return a function that returns the same time for all batches."""
    return lambda _batch: AppendTimeRange(moment_ms, moment_ms, moment_ms)


def append_time_lookup(times: AppendTimes) -> RangeOf:
    """Return a function that returns a batch's append range.

    The range is the broker's time (LogAppendTime), or else the partition's range at the batch's offset.
    """

    def append_range_of(batch: StoredBatch) -> AppendTimeRange:
        header = batch.header
        if header is not None and header.attributes & LOG_APPEND_TIME:
            return AppendTimeRange(header.max_timestamp, header.max_timestamp, header.max_timestamp)
        place = np.array([batch.last_offset], np.int64)
        return AppendTimeRange(*(int(find(place)[0]) for find in (times.earliest, times.latest, times.next_step)))

    return append_range_of


Rows = list[pa.RecordBatch]
_TIMES_DDL = "number int, append_times string"
_TIMES = pa.schema([("number", pa.int32()), ("append_times", pa.string())])


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

    `as_of_ms` is the time (ms) against which everything is validated; None means each batch's append time.
    """
    rulebook, partitions = policies.rulebook(), cut_ranges(ranges, tasks_at_most(spark))

    def validated_in(its: Sequence[Chunk]) -> Sequence[Chunk]:
        whole = its[0].whole
        return (
            [Chunk(whole, whole.start, whole.end)]
            if depends_on_earlier_batches(rulebook.policy_of(whole.of.topic))
            else its
        )

    def count_timestamps_of_chunk(chunk: Chunk) -> pa.Table:
        return count_timestamps(options, chunk, now_ms)

    audit = _auditor(options, policies, samples)
    if as_of_ms is not None:
        chunks = [chunk for its in partitions for chunk in validated_in(its)]
        return map_in_tasks(
            spark, chunks, lambda chunk: chunk.size, lambda chunk: audit(chunk, same_moment_for_all(as_of_ms)), DDL
        )
    alone = [its[0] for its in partitions if len(its) == 1]
    large = [its for its in partitions if len(its) > 1]
    at_once = map_in_tasks(
        spark,
        alone,
        lambda chunk: chunk.size,
        lambda chunk: audit(chunk, append_time_lookup(_times(count_timestamps_of_chunk(chunk), now_ms))),
        DDL,
    )
    if not large:
        return at_once
    chunks = [chunk for its in large for chunk in validated_in(its)]
    times = map_partitions(
        spark,
        large,
        count_timestamps_of_chunk,
        SCHEMA,
        lambda whole, found: [_parts(_times(found, now_ms), whole, chunks)],
        _TIMES_DDL,
    )
    dealt = times.repartition(min(len(chunks), tasks_at_most(spark)))
    in_chunks = dealt.mapInArrow(lambda batches: _by_their_times(batches, chunks, audit), DDL)
    return at_once.union(in_chunks) if alone else in_chunks


def _auditor(options: SourceOptions, policies: Policies, samples: int | None) -> Callable[[Chunk, RangeOf], Rows]:
    def audit_chunk(chunk: Chunk, range_of: RangeOf) -> Rows:
        of = chunk.whole.of
        findings = AuditFindings(of, samples)
        validator = PartitionValidator(of, policies.rulebook(), policies.limits, policies.encrypted_counts())

        def validate_and_add(batch: StoredBatch) -> None:
            add_validated(findings, validator, batch, range_of(batch))

        found: Rows = findings.table(read_chunk(options, chunk, validate_and_add)).to_batches()
        return found

    return audit_chunk


def add_validated(
    findings: AuditFindings, validator: PartitionValidator, batch: StoredBatch, appended: AppendTimeRange
) -> None:
    """Validate a batch at both ends of its append range and add the result.

    Records that are bad at only one end are counted separately. A future time is certain if it is one at the latest
    append, a past time if it is one at the earliest. A batch with both kinds is validated as of the latest append.
    """
    validated = validator.validate(batch, appended.earliest_ms)
    findings.add_encrypted(validator.encrypted)
    is_range = appended.earliest_ms < appended.latest_ms and not validator.depends_on_earlier_batches
    if is_range and timed_reason(validated) is Reason.TIMESTAMP_IN_FUTURE:
        certain = validator.validate(batch, appended.latest_ms)
        perhaps = UncertainRecords(Reason.TIMESTAMP_IN_FUTURE, bad_records(validated) - bad_records(certain))
        findings.add(batch, certain, appended, perhaps)
    elif is_range and validator.bounds_age:
        other = validator.validate(batch, appended.latest_ms)
        perhaps = UncertainRecords(Reason.TIMESTAMP_TOO_OLD, bad_records(other) - bad_records(validated))
        findings.add(batch, validated, appended, perhaps)
    else:
        findings.add(batch, validated, appended)


def _times(found: pa.Table, now_ms: int) -> AppendTimes:
    return append_times(Reading.from_table(found).rows, now_ms)


def _parts(times: AppendTimes, whole: OffsetRange, chunks: Sequence[Chunk]) -> pa.RecordBatch:
    """Return, for each of the partition's chunks, its part of the ranges."""
    its = [(number, chunk) for number, chunk in enumerate(chunks) if chunk.whole == whole]
    rows = [{"number": number, "append_times": json.dumps(_part(times, chunk).as_json())} for number, chunk in its]
    return pa.RecordBatch.from_pylist(rows, _TIMES)


def _part(times: AppendTimes, chunk: Chunk) -> AppendTimes:
    """Return the ranges that date the chunk's batches; the last range may end after the chunk."""
    return times.part(chunk.start, chunk.end if chunk.end < chunk.whole.end else _AFTER_ALL)


def _by_their_times(
    batches: Iterable[pa.RecordBatch], chunks: Sequence[Chunk], audit: Callable[[Chunk, RangeOf], Rows]
) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        for number, text in zip(*(batch[name].to_pylist() for name in _TIMES.names), strict=True):
            yield from audit(chunks[number], append_time_lookup(append_times_from(json.loads(text))))
