"""Classifies rows of timestamp counts by their estimated append."""

from enum import StrEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sluicegate.pipeline.jobs.profile.clock import Clock, clock_of
from sluicegate.pipeline.jobs.profile.kinds import Kind, in_milliseconds, is_plausible_time

_HOUR_MS = 3_600_000


class Damage(StrEnum):
    """FUTURE: more than after.max ahead of the estimated append. PAST: more than before.max behind it. IMPLAUSIBLE:
    before the epoch.
    """

    SECONDS = "seconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"
    ZERO = "zero"
    NEGATIVE = "negative"
    IMPLAUSIBLE = "implausible"
    FUTURE = "future"
    PAST = "past"


NO_DAMAGE = "none"
_OF_KIND = [NO_DAMAGE, *(Damage[kind.name].value for kind in Kind if kind is not Kind.MILLISECONDS)]


def assess(rows: pa.Table, now_ms: int, after_max_ms: int, before_max_ms: int | None) -> pa.Table:
    """Assess rows by the clock that they give; if they give none, by the moment of reading."""
    clock = partition_clock(rows, now_ms)
    return assess_by(clock if clock is not None else Clock.fixed_at(now_ms), rows, after_max_ms, before_max_ms)


def assess_by(clock: Clock, rows: pa.Table, after_max_ms: int, before_max_ms: int | None) -> pa.Table:
    """Add to each row of a partition's counts its `damage`, the estimated `hour` (ms) of its append, and its distance
    (ms) `ahead` of or `behind` that append.
    """
    number = {name: rows[name].to_numpy() for name in ("kind", "earliest", "latest", "first_offset", "last_offset")}
    begun, ended = clock.at(number["first_offset"]), clock.at(number["last_offset"])
    appended = begun + (ended - begun) // 2
    # A row spans at most a minute; if it crosses a bound, its middle decides.
    middle = number["earliest"] // 2 + number["latest"] // 2
    in_ms = number["kind"] == Kind.MILLISECONDS
    damage = np.array(_OF_KIND, dtype="O")[number["kind"]]
    damage[in_ms & (middle > saturated(appended, after_max_ms))] = Damage.FUTURE.value
    if before_max_ms is not None:
        damage[in_ms & (middle < saturated(appended, -before_max_ms))] = Damage.PAST.value
    return (
        rows.append_column("hour", pa.array(appended // _HOUR_MS * _HOUR_MS))
        .append_column("damage", pa.array(damage, pa.string()))
        .append_column("ahead", pa.array(difference(number["latest"], begun)))
        .append_column("behind", pa.array(difference(ended, number["earliest"])))
    )


def partition_clock(rows: pa.Table, now_ms: int) -> Clock | None:
    """Return the clock of a partition from all plausible times in its counts, including converted ones."""
    kinds = rows["kind"].to_numpy().astype(np.int8)
    plausible = is_plausible_time(kinds)
    first, last, weights = (rows[name].to_numpy()[plausible] for name in ("first_offset", "last_offset", "records"))
    earliest, latest = (in_milliseconds(rows[name].to_numpy(), kinds)[plausible] for name in ("earliest", "latest"))
    return clock_of(first, last, earliest, latest, weights, now_ms)


def difference(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return left - right, saturated at int64's bounds."""
    plain = left - right
    overflown = ((left ^ right) & (left ^ plain)) < 0
    bounds = np.where(left < 0, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    return np.where(overflown, bounds, plain)


def saturated(times: NDArray[np.int64], by: int) -> NDArray[np.int64]:
    """Return times + by, saturated at int64's bounds."""
    return difference(times, np.full(len(times), -by, np.int64))
