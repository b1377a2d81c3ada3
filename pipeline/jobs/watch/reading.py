"""Plans and reads the chunks of a watch's batch. They are aggregated as in a profile, and validated as in an audit.

A chunk is a range of a partition, with the two times between which it was appended. Records after the previously known
end were appended after the watch read that end. A watch that has caught up therefore knows what a profile has to
estimate. Its ranges of append times are the profile's ranges, limited to these times. Executors read the chunks.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from sluicegate.pipeline.jobs.audit.findings import MASK, PERHAPS, AuditFindings, RowKind
from sluicegate.pipeline.jobs.audit.partition_validator import PartitionValidator
from sluicegate.pipeline.jobs.audit.partitions import add_validated, append_time_lookup
from sluicegate.pipeline.jobs.audit.policies import Policies
from sluicegate.pipeline.jobs.profile.append_times import AppendTimes, append_times
from sluicegate.pipeline.jobs.profile.cells import aggregated_rows
from sluicegate.pipeline.jobs.profile.invalid_timestamps import assess_timestamps
from sluicegate.pipeline.jobs.profile.reading import Reading, count_timestamps, reader_again
from sluicegate.pipeline.kafka.cluster import KafkaCluster, OffsetRange, TopicPartition, TopicUnknown
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.source.chunks import Chunk, read_chunk
from sluicegate.pipeline.source.decoding import Unreadable
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.pipeline.source.topics import Topics
from sluicegate.protocol.messages.fetch import EARLIEST, LATEST

_ATTEMPTS = 3


class TopicChanged(PipelineError):
    """Raised if a topic ends before an offset that the watch has read. The message names the topic and gives a fix."""


@dataclass(frozen=True, slots=True)
class WatchedOffset:
    """An offset from which records were appended after `after_ms`; 0 means that the time is unknown."""

    offset: int
    after_ms: int


@dataclass(frozen=True, slots=True)
class WatchChunk:
    """The range that one task reads, which was appended between two times (ms)."""

    wanted: OffsetRange
    after_ms: int
    until_ms: int

    def limited(self, estimated: AppendTimes) -> AppendTimes:
        """Return the ranges in which the records were appended, limited to the chunk's times."""
        return estimated.within(self.after_ms, self.until_ms)


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """The state of all partitions, determined between `begun_ms` and `ended_ms`.

    `starts` and `ends` are the partitions' first and end offsets for readers. `settled` are the partitions without open
    transactions; in the others, records become visible later than they were appended. `ids` contains the ids of
    existing topics by name, or "" if a broker does not support topic ids.
    """

    begun_ms: int
    ended_ms: int
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    settled: frozenset[TopicPartition]
    ids: Mapping[str, str]

    def chunks(self, places: Mapping[TopicPartition, WatchedOffset], at_most: int) -> list[WatchChunk]:
        """Return the new ranges.

        If there are more than `at_most` offsets, each partition gets a share in proportion to its unread records.
        Raises TopicChanged.
        """
        for of, place in sorted(places.items()):
            if of.topic in self.ids and of not in self.ends and place.offset > 0:
                raise TopicChanged(
                    f"{of} no longer exists, but was read up to {place.offset}: the topic was recreated with "
                    "fewer partitions. Watch it with another --out"
                )
        left: list[tuple[OffsetRange, int]] = []
        for of, end in sorted(self.ends.items()):
            place = places.get(of, WatchedOffset(self.starts[of], 0))
            if end < place.offset and self.starts[of] < place.offset:
                raise TopicChanged(
                    f"{of} ends at offset {end}, but was read up to {place.offset}: its broker has lost records, or "
                    "the topic was recreated. Watch it with another --out"
                )
            if end > place.offset:
                left.append((OffsetRange(of, place.offset, end), place.after_ms))
        total = sum(wanted.size for wanted, _ in left)
        if total > at_most:
            left = [(_cut(wanted, -(-wanted.size * at_most // total)), after) for wanted, after in left]
        return [WatchChunk(wanted, after, self.ended_ms) for wanted, after in left]

    def place_after(self, chunk: WatchChunk) -> WatchedOffset:
        """Return the place at which the next chunk begins."""
        of, end = chunk.wanted.of, chunk.wanted.end
        knows = end == self.ends[of] and of in self.settled
        return WatchedOffset(end, self.begun_ms if knows else chunk.after_ms)


def read_states(topics: Topics) -> PartitionStates:
    """Return the state of existing topics. Raises TopicTrouble, BrokerUnreachable and ClusterLoginRejected."""
    with topics.cluster() as cluster:
        for _ in range(_ATTEMPTS - 1):
            with suppress(TopicUnknown):  # a topic was deleted between two requests
                return _read_states(cluster, topics.names)
        return _read_states(cluster, topics.names)


def _read_states(cluster: KafkaCluster, names: Iterable[str]) -> PartitionStates:
    begun_ms = time.time_ns() // 1_000_000
    ids = cluster.topic_ids(names)
    partitions = cluster.partitions(ids)
    starts = cluster.offsets(partitions, EARLIEST, committed=True)
    ends, written = (cluster.offsets(partitions, LATEST, committed) for committed in (True, False))
    settled = frozenset(of for of in partitions if ends[of] >= written[of])
    return PartitionStates(begun_ms, time.time_ns() // 1_000_000, starts, ends, settled, ids)


def ids_of(topics: Topics) -> dict[str, str]:
    """Return the current `PartitionStates.ids`."""
    with topics.cluster() as cluster:
        return cluster.topic_ids(topics.names)


def _cut(wanted: OffsetRange, size: int) -> OffsetRange:
    return OffsetRange(wanted.of, wanted.start, min(wanted.end, wanted.start + size))


HOURS, VIOLATIONS, MISSING, UNREADABLE = "hours", "violations", "missing", "unreadable"
COLUMNS = {
    HOURS: (
        "topic, partition, hour, damage, producer_id, codec, timestamp_type, ahead_beyond_ms, behind_beyond_ms, "
        "records, null_keys, bytes, batches, stored_bytes, earliest, latest"
    ),
    VIOLATIONS: (
        "topic, partition, hour, producer_id, codec, verdict, reason, rule, batches, records, bad_records, "
        "first_offset, last_offset"
    ),
    MISSING: "topic, partition, hour, first_offset, last_offset",
    UNREADABLE: "topic, partition, hour, first_offset, last_offset, batches, stored_bytes, reason",
}
DDL = (
    "what string, topic string, partition int, hour bigint, hour_until bigint, damage string, "
    "producer_id bigint, codec string, timestamp_type int, ahead_beyond_ms bigint, behind_beyond_ms bigint, "
    "records bigint, null_keys bigint, bytes bigint, batches bigint, stored_bytes bigint, earliest bigint, "
    "latest bigint, verdict string, reason string, rule string, bad_records bigint, first_offset bigint, "
    "last_offset bigint"
)
_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}
SCHEMA = pa.schema([(name, _TYPES[kind]) for name, kind in (field.split() for field in DDL.split(", "))])
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class WatchBounds:
    """The bounds of a watch in ms, with the same meaning as in a profile.

    They are the limit for `future`, the limit for `past` (None means no limit), and the epoch (None means ten years
    before now).
    """

    after_max_ms: int
    before_max_ms: int | None
    epoch_ms: int | None


def reader(
    options: SourceOptions, bounds: WatchBounds, policies: Policies | None
) -> Callable[[WatchChunk], list[pa.RecordBatch]]:
    """Return a function that processes a chunk in a task, and returns rows of `DDL`."""

    def read(chunk: WatchChunk) -> list[pa.RecordBatch]:
        wanted, now_ms = chunk.wanted, chunk.until_ms
        reading = Reading.from_table(count_timestamps(options, _whole(wanted), now_ms, bounds.epoch_ms))
        times = chunk.limited(append_times(reading.rows, now_ms))
        again = reader_again(options, wanted, now_ms, bounds.epoch_ms)
        assessed = assess_timestamps(reading.rows, times, bounds.after_max_ms, bounds.before_max_ms, again)
        cells = aggregated_rows(assessed, now_ms, bounds.after_max_ms)
        found = [
            _laid_out(cells, HOURS),
            _missing_rows(chunk, reading.missing),
            _unreadable_rows(chunk, reading.unreadable),
        ]
        if policies is not None:
            found.append(_laid_out(_validated(options, chunk, policies, times), VIOLATIONS))
        rows: list[pa.RecordBatch] = pa.concat_tables(found).to_batches()
        return rows

    return read


def _validated(options: SourceOptions, chunk: WatchChunk, policies: Policies, times: AppendTimes) -> pa.Table:
    """Return the certain violations, except those of fields that a proxy masks, because hashed fields look the same.

    A batch in two chunks is validated with the later chunk. The first reading reports deleted ranges.
    """
    wanted, appended = chunk.wanted, append_time_lookup(times)
    validator = PartitionValidator(wanted.of, policies.rulebook(), policies.limits)
    findings = AuditFindings(wanted.of, samples=0)

    def take(batch: StoredBatch) -> None:
        if batch.last_offset < wanted.end:
            add_validated(findings, validator, batch, appended(batch))

    read_chunk(options, _whole(wanted), take)
    rows = findings.table(())
    is_finding = pa.compute.equal(rows["what"], RowKind.FINDINGS.value)
    is_left_out = pa.compute.is_in(rows["verdict"], pa.array([MASK, PERHAPS]))
    return rows.filter(pa.compute.and_(is_finding, pa.compute.invert(is_left_out)))


def _whole(wanted: OffsetRange) -> Chunk:
    return Chunk(wanted, wanted.start, wanted.end)


def _missing_rows(chunk: WatchChunk, missing: tuple[tuple[int, int], ...]) -> pa.Table:
    of, hour = chunk.wanted.of, chunk.until_ms // _HOUR_MS * _HOUR_MS
    where: dict[str, Any] = {"what": MISSING, "topic": of.topic, "partition": of.partition, "hour": hour}
    return pa.Table.from_pylist(
        [where | {"first_offset": first, "last_offset": end - 1} for first, end in missing], SCHEMA
    )


def _unreadable_rows(chunk: WatchChunk, found: Sequence[Unreadable]) -> pa.Table:
    of, hour = chunk.wanted.of, chunk.until_ms // _HOUR_MS * _HOUR_MS
    where: dict[str, Any] = {"what": UNREADABLE, "topic": of.topic, "partition": of.partition, "hour": hour}
    return pa.Table.from_pylist([where | asdict(each) for each in found], SCHEMA)


def _laid_out(rows: pa.Table, what: str) -> pa.Table:
    """Return the rows with all columns of `SCHEMA`. Missing columns are null."""
    count, wanted = len(rows), {"hour_until", *(name.strip() for name in COLUMNS[what].split(","))}
    columns = [
        pa.array([what] * count)
        if field.name == "what"
        else rows[field.name].cast(field.type)
        if field.name in wanted
        else pa.nulls(count, field.type)
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)
