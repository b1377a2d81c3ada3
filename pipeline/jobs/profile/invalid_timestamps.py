"""Classifies rows of timestamp counts, given the range in which their records were appended (`append_times`)."""

from collections.abc import Callable, Iterator
from enum import StrEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sluicegate.pipeline.jobs.profile.append_times import HOUR_MS, AppendTimes, TimestampDoubt, saturating_subtract
from sluicegate.pipeline.jobs.profile.clock import Clock, clock_of
from sluicegate.pipeline.jobs.profile.kinds import TimestampKind, in_milliseconds, is_plausible_time
from sluicegate.pipeline.jobs.profile.timestamp_counts import DOUBTS_FROM, DoubtsOf
from sluicegate.pipeline.source.chunks import BLOCK_OFFSETS

_BY_BROKER = 1


class InvalidTimestampKind(StrEnum):
    """The kinds of invalid timestamps.

    FUTURE is more than after.max ahead of the append, at any point of its range. PAST is more than before.max behind
    it. IMPLAUSIBLE is before the epoch.
    """

    SECONDS = "seconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"
    ZERO = "zero"
    NEGATIVE = "negative"
    IMPLAUSIBLE = "implausible"
    FUTURE = "future"
    PAST = "past"


class UncertainTimestampKind(StrEnum):
    """Kinds of times that are invalid for only a part of the range in which they were appended."""

    FUTURE = "maybe_future"
    PAST = "maybe_past"
    EITHER = "maybe_either"


VALID_TIMESTAMP = "none"
_OF_KIND = [
    VALID_TIMESTAMP,
    *(InvalidTimestampKind[kind.name].value for kind in TimestampKind if kind is not TimestampKind.MILLISECONDS),
]
CODE_OF_DOUBT = {
    TimestampDoubt.FUTURE: InvalidTimestampKind.FUTURE.value,
    TimestampDoubt.PAST: InvalidTimestampKind.PAST.value,
    TimestampDoubt.MAYBE_FUTURE: UncertainTimestampKind.FUTURE.value,
    TimestampDoubt.MAYBE_PAST: UncertainTimestampKind.PAST.value,
    TimestampDoubt.MAYBE_EITHER: UncertainTimestampKind.EITHER.value,
}
_NAMES = np.array([*_OF_KIND, *CODE_OF_DOUBT.values()], dtype="O")  # CODE_OF_DOUBT begins with the doubt 1
POSSIBLE_CODES = {
    InvalidTimestampKind.FUTURE.value: (
        InvalidTimestampKind.FUTURE.value,
        UncertainTimestampKind.FUTURE.value,
        UncertainTimestampKind.EITHER.value,
    ),
    InvalidTimestampKind.PAST.value: (
        InvalidTimestampKind.PAST.value,
        UncertainTimestampKind.PAST.value,
        UncertainTimestampKind.EITHER.value,
    ),
}
"""The codes of records that may have this kind of invalid timestamp."""

ReadAgain = Callable[[int, int, DoubtsOf], pa.Table]
"""Returns the rows of the partition's batches that end in [start, end), separated by their `TimestampDoubt`."""


def assess_timestamps(
    rows: pa.Table,
    times: AppendTimes,
    after_max_ms: int,
    before_max_ms: int | None,
    read_again: ReadAgain | None = None,
) -> pa.Table:
    """Add columns to each row of a partition's counts.

    `damage` is the row's code. `hour` is the hour (ms) of its earliest append. `hour_until` is the end of the hour of
    its latest append, by the partition's own times. The other columns are distances (ms) from the append: `ahead` and
    `behind` are the smallest possible ones, `ahead_at_most` and `behind_at_most` the largest.

    If a bound divides a row, the row is read again and divided, if possible. Otherwise the middle of the row decides.
    """
    bounds = (after_max_ms, before_max_ms)
    rows = _divided(rows, times, bounds, read_again)
    earliest, latest, first, last = (
        rows[name].to_numpy() for name in ("earliest", "latest", "first_place", "last_place")
    )
    kinds, stamped = rows["kind"].to_numpy().astype(np.int32), _is_by_broker(rows)
    if read_again is None:
        _add_doubts(kinds, stamped, times.doubts(earliest // 2 + latest // 2, last, *bounds))
    begun, ended, until, step = (
        times.earliest(first), times.earliest(last), times.latest(last), times.next_step(last),
    )  # fmt: skip
    begun, ended, step = np.where(stamped, (earliest, latest, latest), (begun, ended, step))
    hour = (begun + (ended - begun) // 2) // HOUR_MS * HOUR_MS
    hour_until = np.where(step - begun <= HOUR_MS, hour, step // HOUR_MS * HOUR_MS)
    distances = {
        "ahead": saturating_subtract(latest, until),
        "behind": saturating_subtract(begun, earliest),
        "ahead_at_most": saturating_subtract(latest, begun),
        "behind_at_most": saturating_subtract(until, earliest),
    }
    rows = rows.set_column(rows.schema.get_field_index("kind"), "kind", pa.array(kinds))
    rows = rows.append_column("hour", pa.array(hour)).append_column("hour_until", pa.array(hour_until))
    rows = rows.append_column("damage", pa.array(_NAMES[kinds], pa.string()))
    for name, distance in distances.items():
        rows = rows.append_column(name, pa.array(np.where(stamped, 0, distance)))
    return rows


def _add_doubts(kinds: NDArray[np.int32], stamped: NDArray[np.bool_], doubts: NDArray[np.int8]) -> None:
    """Change the kind of each producer's time in milliseconds that is in doubt."""
    doubted = (kinds == TimestampKind.MILLISECONDS) & ~stamped & (doubts > 0)
    kinds[doubted] = doubts[doubted] + DOUBTS_FROM


def _divided(
    rows: pa.Table, times: AppendTimes, bounds: tuple[int, int | None], read_again: ReadAgain | None
) -> pa.Table:
    """Return rows with one doubt each. Their kinds are above `DOUBTS_FROM`."""
    if read_again is None or not len(rows):
        return rows
    corners = [
        times.doubts(rows[time].to_numpy(), rows[place].to_numpy(), *bounds)
        for time in ("earliest", "latest")
        for place in ("first_place", "last_place")
    ]
    kinds, stamped = rows["kind"].to_numpy().astype(np.int32), _is_by_broker(rows)
    is_divided = (kinds == TimestampKind.MILLISECONDS) & ~stamped & (np.ptp(corners, axis=0) > 0)
    blocks = rows["block"].to_numpy()
    again = np.unique(blocks[is_divided])
    _add_doubts(kinds, stamped, corners[0])
    rows = rows.set_column(rows.schema.get_field_index("kind"), "kind", pa.array(kinds))
    kept = [rows.filter(pa.array(~np.isin(blocks, again)))]
    for first, end in _runs(again):
        start, stop = (block * BLOCK_OFFSETS for block in (first, end))
        kept.append(read_again(start, stop, lambda found, place: _doubts_at(times, found, place, bounds)))
    return pa.concat_tables(kept)


def _doubts_at(
    times: AppendTimes, found: NDArray[np.int64], place: int, bounds: tuple[int, int | None]
) -> NDArray[np.int8]:
    return times.doubts(found, np.full(len(found), place, np.int64), *bounds)


def _runs(blocks: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield adjacent blocks as [first, end)."""
    for run in np.split(blocks, np.flatnonzero(np.diff(blocks) > 1) + 1):
        if len(run):
            yield int(run[0]), int(run[-1]) + 1


def _is_by_broker(rows: pa.Table) -> NDArray[np.bool_]:
    return np.asarray(rows["timestamp_type"].to_numpy() == _BY_BROKER)


def partition_clock(rows: pa.Table, now_ms: int) -> Clock | None:
    """Return a partition's clock from all plausible times in its counts, including converted times."""
    kinds = rows["kind"].to_numpy().astype(np.int8)
    plausible = is_plausible_time(kinds)
    first, last, weights = (rows[name].to_numpy()[plausible] for name in ("first_offset", "last_offset", "records"))
    earliest, latest = (in_milliseconds(rows[name].to_numpy(), kinds)[plausible] for name in ("earliest", "latest"))
    return clock_of(first, last, earliest, latest, weights, now_ms)
