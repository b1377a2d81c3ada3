"""Surveys a partition before anything is written: its clock, and the future contents of its clean topic."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.profile import reading
from sluicegate.pipeline.jobs.profile.append_times import AppendTimes, append_times, append_times_from
from sluicegate.pipeline.jobs.profile.clock import Clock, simplify_clock
from sluicegate.pipeline.jobs.profile.invalid_timestamps import partition_clock
from sluicegate.pipeline.jobs.profile.kinds import TimestampKind, in_milliseconds, is_plausible_time
from sluicegate.pipeline.jobs.profile.reading import Reading, count_timestamps
from sluicegate.pipeline.jobs.profile.timestamp_counts import MINUTE_MS
from sluicegate.pipeline.jobs.repair.correction import Rules, clock_as_plan, clock_from
from sluicegate.pipeline.jobs.repair.settings import RepairTopicSettings
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.source.chunks import Chunk, cut_ranges, map_partitions
from sluicegate.pipeline.source.decoding import Unreadable
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.tasks import tasks_at_most
from sluicegate.pipeline.source.topics import Topics

_DDL = (
    "topic string, partition int, codec string, records bigint, null_keys bigint, largest bigint, outdated bigint, "
    "earliest bigint, latest bigint, start bigint, may_shrink boolean, unreadable string, offsets array<bigint>, "
    "times array<bigint>, append_times string"
)


@dataclass(frozen=True, slots=True)
class PartitionContents:
    """The contents of a range.

    - `records`: the number of records.
    - `null_keys`: the number of records without a key.
    - `outdated`: the number of records whose corrected times exceed the source's retention.ms.
    - `largest`: the bytes of the largest record; 0 if no record may be too large.
    - `may_shrink`: whether the source is compacted, so that the next reading may find fewer records.
    - `unreadable`: unreadable batches. Their records are not counted.
    - `earliest`, `latest`: the range of times (ms) of records whose timestamps are valid or in another unit; 0 if there
      are no such records.
    """

    records: int = 0
    null_keys: int = 0
    outdated: int = 0
    largest: int = 0
    may_shrink: bool = False
    unreadable: tuple[Unreadable, ...] = ()
    earliest: int = 0
    latest: int = 0


@dataclass(frozen=True, slots=True)
class PartitionSurvey:
    """The survey of a partition.

    `start` is the start of the range, after the records that retention has deleted meanwhile. `clock` is None if there
    is no usable time. `codec` is the codec of most records. `times` contains the ranges of the appends.
    """

    start: int
    contents: PartitionContents
    codec: str
    clock: Clock | None
    times: AppendTimes


def survey(
    spark: SparkSession,
    topics: Topics,
    ranges: Sequence[OffsetRange],
    rules: Rules,
    settings: Mapping[str, RepairTopicSettings],
    large_bytes: Mapping[str, int],
) -> dict[TopicPartition, PartitionSurvey]:
    """Survey the ranges that are not empty.

    `settings` are the sources' settings. A record of `large_bytes` or more may be too large for the clean topic.
    """
    options = source_options(topics.options)

    def read(chunk: Chunk) -> pa.Table:
        return count_timestamps(options, chunk, rules.now_ms, rules.epoch_ms, large_bytes[chunk.whole.of.topic])

    def finish(wanted: OffsetRange, parts: pa.Table) -> list[pa.RecordBatch]:
        its, held = settings[wanted.of.topic], Reading.from_table(parts)
        rows = held.rows
        if not len(rows) and not held.unreadable:
            return []
        clock = partition_clock(rows, rules.now_ms)
        by_codec = rows.group_by("codec").aggregate([("records", "sum")])
        by_codec = by_codec.sort_by([("records_sum", "descending"), ("codec", "ascending")])
        contents = PartitionContents(
            pc.sum(rows["records"]).as_py() or 0,
            pc.sum(rows["null_keys"]).as_py() or 0,
            0 if its.retention_ms is None else _before(rows, clock, rules.now_ms - its.retention_ms),
            held.largest,
            its.is_compacted,
            held.unreadable,
            *_span(rows, rules.now_ms + rules.after_max_ms),
        )
        start = max([wanted.start, *(end for first, end in held.missing if first == wanted.start)])
        found = {
            "topic": wanted.of.topic,
            "partition": wanted.of.partition,
            "codec": by_codec["codec"][0].as_py() if len(by_codec) else "none",
            "start": start,
            "append_times": json.dumps(append_times(rows, rules.now_ms).without_hours().as_json()),
        }
        plan = clock_as_plan(None if clock is None else simplify_clock(clock, MINUTE_MS)) or {}
        counts = asdict(contents) | {"unreadable": json.dumps([asdict(each) for each in held.unreadable])}
        return [pa.RecordBatch.from_pylist([found | counts | plan], schema=_SCHEMA)]

    partitions = cut_ranges(ranges, tasks_at_most(spark))
    rows = map_partitions(spark, partitions, read, reading.SCHEMA, finish, _DDL).collect()
    return {
        TopicPartition(row.topic, row.partition): PartitionSurvey(
            row.start,
            PartitionContents(
                *(row.records, row.null_keys, row.outdated, row.largest, row.may_shrink),
                tuple(Unreadable(**each) for each in json.loads(row.unreadable)),
                *(row.earliest, row.latest),
            ),
            row.codec,
            clock_from(None if row.offsets is None else row.asDict()),
            append_times_from(json.loads(row.append_times)),
        )
        for row in rows
    }


def _span(rows: pa.Table, latest_ms: int) -> tuple[int, int]:
    """Return the range of the times that stay or are converted. Later times are certainly ahead, and are listed."""
    kinds = rows["kind"].to_numpy().astype(np.int8)
    times = in_milliseconds(rows["latest"].to_numpy(), kinds)
    usable = is_plausible_time(kinds) & (times <= latest_ms)
    earliest, latest = (in_milliseconds(rows[name].to_numpy(), kinds)[usable] for name in ("earliest", "latest"))
    return (int(earliest.min()), int(latest.max())) if len(earliest) else (0, 0)


def _before(rows: pa.Table, clock: Clock | None, moment_ms: int) -> int:
    """Return the number of records with a corrected time before `moment_ms`, rounded to the minute."""
    kinds = rows["kind"].to_numpy().astype(np.int8)
    times = in_milliseconds(rows["latest"].to_numpy(), kinds)
    if clock is not None:
        timeless = np.isin(kinds, (TimestampKind.ZERO, TimestampKind.NEGATIVE))
        times[timeless] = clock.at(rows["last_offset"].to_numpy()[timeless])
    return int(rows["records"].to_numpy()[times < moment_ms].sum())


_NUMBERS = ("records", "null_keys", "largest", "outdated", "earliest", "latest", "start")
_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("codec", pa.string()),
        *((name, pa.int64()) for name in _NUMBERS),
        ("may_shrink", pa.bool_()),
        ("unreadable", pa.string()),
        ("offsets", pa.list_(pa.int64())),
        ("times", pa.list_(pa.int64())),
        ("append_times", pa.string()),
    ]
)
