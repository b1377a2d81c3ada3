"""One partition's piece of a batch on an executor: added up as for a profile, and validated as `audit` does."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from sluicegate.pipeline.jobs.audit.append_times import when_appended
from sluicegate.pipeline.jobs.audit.findings import Findings, What
from sluicegate.pipeline.jobs.audit.partition_validator import PartitionValidator
from sluicegate.pipeline.jobs.audit.policies import Policies
from sluicegate.pipeline.jobs.profile.cells import added_up
from sluicegate.pipeline.jobs.profile.clock import Clock
from sluicegate.pipeline.jobs.profile.damage import assess_by, partition_clock
from sluicegate.pipeline.jobs.profile.reading import Reading, read_into_tally
from sluicegate.pipeline.jobs.watch.chunks import Piece
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source import chunks
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.pipeline.source.unreadable import Unreadable

HOURS, VIOLATIONS, GONE, UNREADABLE = "hours", "violations", "gone", "unreadable"
COLUMNS = {
    HOURS: (
        "topic, partition, hour, damage, producer_id, codec, timestamp_type, ahead_beyond_ms, behind_beyond_ms, "
        "records, null_keys, bytes, batches, stored_bytes, earliest, latest"
    ),
    VIOLATIONS: (
        "topic, partition, hour, producer_id, codec, verdict, reason, rule, batches, records, bad_records, "
        "first_offset, last_offset"
    ),
    GONE: "topic, partition, hour, first_offset, last_offset",
    UNREADABLE: "topic, partition, hour, first_offset, last_offset, batches, stored_bytes, why",
}
DDL = (
    "what string, topic string, partition int, hour bigint, damage string, producer_id bigint, codec string, "
    "timestamp_type int, ahead_beyond_ms bigint, behind_beyond_ms bigint, records bigint, null_keys bigint, "
    "bytes bigint, batches bigint, stored_bytes bigint, earliest bigint, latest bigint, verdict string, reason string, "
    "rule string, bad_records bigint, first_offset bigint, last_offset bigint, "
    "why string"
)
_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}
SCHEMA = pa.schema([(name, _TYPES[kind]) for name, kind in (field.split() for field in DDL.split(", "))])
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """As for a profile, in ms: what is `future`, `past` (None: nothing is), and the epoch (None: ten years back)."""

    after_max_ms: int
    before_max_ms: int | None
    epoch_ms: int | None


def reader(
    options: SourceOptions, bounds: Bounds, policies: Policies | None
) -> Callable[[Piece], list[pa.RecordBatch]]:
    """What a task does with a piece: rows of `DDL`."""

    def read(piece: Piece) -> list[pa.RecordBatch]:
        wanted, now_ms = piece.wanted, piece.until_ms
        reading = Reading.of(read_into_tally(options, _whole(wanted), now_ms, bounds.epoch_ms))
        clock = piece.clock(partition_clock(reading.rows, now_ms))
        cells = added_up(assess_by(clock, reading.rows, bounds.after_max_ms, bounds.before_max_ms), now_ms)
        found = [_laid_out(cells, HOURS), _gone(piece, reading.gone), _unreadable(piece, reading.unreadable)]
        if policies is not None:
            found.append(_laid_out(_validated(options, piece, policies, clock), VIOLATIONS))
        rows: list[pa.RecordBatch] = pa.concat_tables(found).to_batches()
        return rows

    return read


def _validated(options: SourceOptions, piece: Piece, policies: Policies, clock: Clock) -> pa.Table:
    """A batch that lies in two pieces is validated with the later one. What is gone is told by the first reading."""
    wanted, moment_of = piece.wanted, when_appended(clock)
    audit = PartitionValidator(wanted.of, policies.rulebook(), policies.limits)
    findings = Findings(wanted.of, samples=0)

    def take(batch: StoredBatch) -> None:
        if batch.last_offset < wanted.end:
            moment = moment_of(batch)
            findings.add(batch, audit.audit(batch, moment), moment)

    chunks.read_piece(options, _whole(wanted), take)
    rows = findings.table(())
    return rows.filter(pa.compute.equal(rows["what"], What.FINDINGS.value))


def _whole(wanted: OffsetRange) -> chunks.Piece:
    return chunks.Piece(wanted, wanted.start, wanted.end)


def _gone(piece: Piece, gone: tuple[tuple[int, int], ...]) -> pa.Table:
    of, hour = piece.wanted.of, piece.until_ms // _HOUR_MS * _HOUR_MS
    where: dict[str, Any] = {"what": GONE, "topic": of.topic, "partition": of.partition, "hour": hour}
    return pa.Table.from_pylist(
        [where | {"first_offset": first, "last_offset": end - 1} for first, end in gone], SCHEMA
    )


def _unreadable(piece: Piece, found: Sequence[Unreadable]) -> pa.Table:
    of, hour = piece.wanted.of, piece.until_ms // _HOUR_MS * _HOUR_MS
    where: dict[str, Any] = {"what": UNREADABLE, "topic": of.topic, "partition": of.partition, "hour": hour}
    return pa.Table.from_pylist([where | asdict(each) for each in found], SCHEMA)


def _laid_out(rows: pa.Table, what: str) -> pa.Table:
    """With all columns of `SCHEMA`, those that it has none of empty."""
    count, wanted = len(rows), {name.strip() for name in COLUMNS[what].split(",")}
    columns = [
        pa.array([what] * count)
        if field.name == "what"
        else rows[field.name].cast(field.type)
        if field.name in wanted
        else pa.nulls(count, field.type)
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)
