"""Computes the cells of a profile: a row for each of a partition's hours, kinds of times, producers and distances."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sluicegate.pipeline.jobs.profile.append_times import append_times
from sluicegate.pipeline.jobs.profile.invalid_timestamps import (
    CODE_OF_DOUBT,
    POSSIBLE_CODES,
    VALID_TIMESTAMP,
    InvalidTimestampKind,
    ReadAgain,
    assess_timestamps,
)
from sluicegate.pipeline.jobs.profile.kinds import LikelyUnits
from sluicegate.pipeline.jobs.profile.reading import NOTE_TYPES, Reading, unreadable_row
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.protocol.records.record_batch import NO_TIMESTAMP

_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
LADDER_MS = (
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 3, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 3, 7, 14, 30, 90, 365, 3650)),
)
KAFKA_4_AFTER_MAX_MS = _HOUR
"""The default in Kafka 4 (KIP-937)."""
KEYS = (
    "topic",
    "partition",
    "hour",
    "damage",
    "producer_id",
    "codec",
    "timestamp_type",
    "ahead_beyond_ms",
    "behind_beyond_ms",
    "hour_until",
    "ahead_at_most_ms",
    "behind_at_most_ms",
    "likely_unit",
)
SUMS = ("records", "null_keys", "bytes", "batches", "stored_bytes")
DDL = (
    "topic string, partition int, hour bigint, damage string, producer_id bigint, codec string, timestamp_type int, "
    "ahead_beyond_ms bigint, behind_beyond_ms bigint, hour_until bigint, ahead_at_most_ms bigint, "
    "behind_at_most_ms bigint, likely_unit string, records bigint, null_keys bigint, "
    "bytes bigint, batches bigint, stored_bytes bigint, earliest bigint, latest bigint, "
    "missing_from bigint, missing_to bigint, unreadable_from bigint, unreadable_to bigint, "
    "unreadable_batches bigint, unreadable_bytes bigint, reason string"
)
HOURS = "hours"
"""The name of the table."""
IS_CELL = "records IS NOT NULL"
"""Other rows describe deleted ranges (`missing_from`) or unreadable batches (`reason`)."""
_NO_CELLS = pa.schema([("topic", pa.string()), ("partition", pa.int32()), *NOTE_TYPES.items()])
_GUESSED = (InvalidTimestampKind.IMPLAUSIBLE.value, InvalidTimestampKind.FUTURE.value)
_BOUNDED = (VALID_TIMESTAMP, *CODE_OF_DOUBT.values())
_SIDES = {
    "ahead": "ahead_beyond_ms",
    "behind": "behind_beyond_ms",
    "ahead_at_most": "ahead_at_most_ms",
    "behind_at_most": "behind_at_most_ms",
}
_STEPS = np.array([0, *LADDER_MS], np.int64)


def cells_of(
    wanted: OffsetRange,
    reading: Reading,
    now_ms: int,
    after_max_ms: int,
    before_max_ms: int | None,
    read_again: ReadAgain | None = None,
) -> pa.Table:
    """Return a partition's counts as cells, and a row without records for each deleted or unreadable range.

    For `read_again` see `assess_timestamps`.
    """
    times = append_times(reading.rows, now_ms)
    cells = aggregated_rows(
        assess_timestamps(reading.rows, times, after_max_ms, before_max_ms, read_again), now_ms, after_max_ms
    )
    where = {"topic": wanted.of.topic, "partition": wanted.of.partition}
    notes = [where | {"missing_from": first, "missing_to": end - 1} for first, end in reading.missing]
    notes += [where | unreadable_row(each) for each in reading.unreadable]
    return pa.concat_tables([cells, pa.Table.from_pylist(notes, _NO_CELLS)], promote_options="default")


def aggregated_rows(rows: pa.Table, now_ms: int, after_max_ms: int) -> pa.Table:
    """Aggregate assessed rows by `KEYS`.

    `likely_unit` is the unit in which implausible and future times were perhaps written, or null.

    `ahead_beyond_ms` is the largest bound of the ladder by which records are certainly ahead of their append; it is 0
    if they are within all bounds. `behind_beyond_ms` is the same for records behind their earliest append.
    `ahead_at_most_ms` and `behind_at_most_ms` are the largest bounds by which records may be ahead or behind. A time of
    -1 (no timestamp) is beyond no bound, because no limit rejects it.
    """
    validated = (rows["earliest"].to_numpy() != NO_TIMESTAMP) | (rows["latest"].to_numpy() != NO_TIMESTAMP)
    codes = rows["damage"].to_numpy()
    beyond = {side: _beyond(np.where(validated, rows[side].to_numpy(), 0)) for side in _SIDES}
    for side, of in (
        ("ahead", (InvalidTimestampKind.FUTURE.value,)),
        ("ahead_at_most", POSSIBLE_CODES[InvalidTimestampKind.FUTURE.value]),
    ):
        is_open = np.isin(codes, _BOUNDED)
        beyond[side][is_open] = _as_decided(beyond[side], np.isin(codes, of), after_max_ms)[is_open]
    for side, column in _SIDES.items():
        rows = rows.append_column(column, pa.array(beyond[side]))
    rows = rows.append_column("likely_unit", _likely_units(rows, now_ms))
    grouped = rows.group_by(list(KEYS)).aggregate(
        [*((name, "sum") for name in SUMS), ("earliest", "min"), ("latest", "max")]
    )
    names = [*KEYS, *(f"{name}_sum" for name in SUMS), "earliest_min", "latest_max"]
    return grouped.select(names).rename_columns([*KEYS, *SUMS, "earliest", "latest"])


def _likely_units(rows: pa.Table, now_ms: int) -> pa.Array:
    """Return each row's likely unit. All numbers in a row have the same unit, so checking the smallest is enough."""
    found = np.full(len(rows), None, "O")
    guessed = np.flatnonzero(np.isin(rows["damage"].to_numpy(), _GUESSED))
    found[guessed] = LikelyUnits(now_ms).names(rows["earliest"].to_numpy()[guessed])
    return pa.array(found, pa.string())


def _as_decided(beyond: NDArray[np.int64], is_beyond: NDArray[np.bool_], bound_ms: int) -> NDArray[np.int64]:
    """Return the steps, corrected to agree with the decision about each record for a bound of the ladder.

    The correction is necessary because a row's distance is the distance of its largest time.
    """
    place = int(np.searchsorted(_STEPS, bound_ms))
    if place in (0, len(_STEPS)) or _STEPS[place] != bound_ms:
        return beyond
    return np.where(is_beyond, np.maximum(beyond, bound_ms), np.minimum(beyond, _STEPS[place - 1]))


def _beyond(distances: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(_STEPS[np.searchsorted(_STEPS[1:], distances, side="left")])
