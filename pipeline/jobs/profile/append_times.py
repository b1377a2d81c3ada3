"""Estimates when a partition's records were appended, for profile, advise, audit, repair and watch.

A broker stores this time only with LogAppendTime. Otherwise records contain their producers' times, which may be late
(replays, backfills, copies of other topics), ahead, constant or invented. The estimate is therefore a range for each
batch, and not a point in time.

**Certain.** Records are appended in the order of their offsets, and before the moment of reading. A time that the
broker set (LogAppendTime) is the append time itself: an upper bound for all earlier offsets and a lower bound for all
later ones. `latest` follows from these facts alone. A record that is too far ahead of `latest` is therefore certainly
ahead.

**Estimated.** A valid time is not later than its append, however late the record is. The append is therefore at or
after every valid time at an earlier or equal offset. It is not known which times are valid. If two records contradict
each other (a later time before an earlier one), the first is ahead or the second is late. `clock.fit_non_decreasing`
selects the explanation with the lowest cost, in which being ahead costs a record's weight once and being late costs it
three times. `earliest` is the running maximum of the remaining times. This is the lowest explanation in which not more
than three quarters of the times need to be wrong. Late records, backfills and copies leave `earliest` below the append,
in any order. If the fitted times continue past the moment of reading without a gap of an hour, all of them are ahead,
and `earliest` is moved back by the amount by which they exceed it.

A record counts as future or past only if this is true for the whole range of its append time. If it is true for only a
part of the range, the record is counted separately, as perhaps future or past (`TimestampDoubt`), and figures are
ranges. The truth is within the range, with these exceptions:

- If more than three quarters of the neighbouring records are ahead by the same amount, and the partition ends before
  they
  reach the moment of reading, nothing reveals it, and the records look valid.
- If a partition begins with records that are ahead, and only a few times as many records follow, nothing earlier
  contradicts them, and they look valid.
- Errors within `step_ms`, which is a minute (or, for a partition that spans more than a month, a 50,000th of its span).

**Hours.** A record is dated to the hour only if its range by the partition's own times is no longer than an hour. This
range is from `earliest` to the next step (`next_step`), which includes the steps of the opposite explanation, in which
being ahead costs three times. Constant, repeated and contradictory times cannot date records to the hour. Copied and
backfilled topics show the hours of the records' own times, and reports describe them as such.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sluicegate.pipeline.jobs.profile.clock import COARSE_MS, SKEW_MS, fit_non_decreasing
from sluicegate.pipeline.jobs.profile.kinds import in_milliseconds, is_plausible_time

Int64s = NDArray[np.int64]
HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_MOST_STEPS = 50_000
_BY_BROKER = 1
_UNKNOWN_MS = 0
_NOTHING = np.empty(0, np.int64)


class TimestampDoubt(IntEnum):
    """The relation of a time to the range of its append. `MAYBE_...` applies if only a part of the range shows it."""

    NONE = 0
    FUTURE = 1
    PAST = 2
    MAYBE_FUTURE = 3
    MAYBE_PAST = 4
    MAYBE_EITHER = 5


@dataclass(frozen=True, slots=True)
class AppendTimes:
    """The range (ms) in which each record was appended, by its offset. All records of a batch have the same range.

    All arrays are in ascending order.

    - `offsets`, `times`: steps of the lower bound. Each applies from its offset on, which is the base offset of a
      batch.
    - `known_offsets`, `known`: times that the broker stored, at or after the append of all offsets up to theirs.
    - `likely_offsets`, `likely`: the steps of the opposite explanation, for hours.
    - `until_ms`: the moment of reading.
    - `step_ms`: the accuracy of the steps.
    """

    offsets: Int64s
    times: Int64s
    known_offsets: Int64s
    known: Int64s
    likely_offsets: Int64s
    likely: Int64s
    until_ms: int
    step_ms: int

    @classmethod
    def between(cls, earliest_ms: int, until_ms: int) -> "AppendTimes":
        """Return the same range for all offsets."""
        always = (np.zeros(1, np.int64), np.full(1, earliest_ms, np.int64))
        return cls(*always, *(_NOTHING,) * 4, until_ms, _MINUTE_MS)

    def without_hours(self) -> "AppendTimes":
        """Return the ranges without the fields that only hours need."""
        return replace(self, likely_offsets=_NOTHING, likely=_NOTHING)

    def earliest(self, places: Int64s) -> Int64s:
        """Return the lower bound (ms) at these offsets."""
        steps = np.searchsorted(self.offsets, places, side="right") - 1
        return np.asarray(self.times[np.maximum(steps, 0)])

    def latest(self, places: Int64s) -> Int64s:
        """Return the upper bound (ms) at these offsets."""
        bounds = np.append(self.known, self.until_ms)
        return np.asarray(bounds[np.searchsorted(self.known_offsets, places, side="left")])

    def next_step(self, places: Int64s) -> Int64s:
        """Return the next step of either explanation, whichever is later, but at most the upper bound."""
        found = self.earliest(places)
        for offsets, times in ((self.offsets, self.times), (self.likely_offsets, self.likely)):
            if len(offsets):
                steps = np.append(times, self.until_ms)
                found = np.maximum(found, steps[np.searchsorted(offsets, places, side="right")])
        later: Int64s = np.minimum(found, self.latest(places))
        return later

    def within(self, after_ms: int, until_ms: int) -> "AppendTimes":
        """Return the ranges under the condition that all records were appended between two times."""
        clipped = {name: np.clip(getattr(self, name), after_ms, until_ms) for name in ("times", "known", "likely")}
        return replace(self, **clipped, until_ms=until_ms)

    def part(self, first: int, end: int) -> "AppendTimes":
        """Return the part of the ranges that the offsets [first, end) need."""
        steps, likely = (_around(offsets, first, end) for offsets in (self.offsets, self.likely_offsets))
        begin = int(np.searchsorted(self.known_offsets, first, side="left"))
        known = slice(begin, int(np.searchsorted(self.known_offsets, end - 1, side="left")) + 1)
        return replace(
            self,
            offsets=self.offsets[steps],
            times=self.times[steps],
            known_offsets=self.known_offsets[known],
            known=self.known[known],
            likely_offsets=self.likely_offsets[likely],
            likely=self.likely[likely],
        )

    def doubts(self, times: Int64s, places: Int64s, after_max_ms: int, before_max_ms: int | None) -> NDArray[np.int8]:
        """Return the `TimestampDoubt` of each producer's time. `places` contains an offset in each time's batch."""
        earliest, latest = self.earliest(places), self.latest(places)
        found = np.zeros(len(times), np.int8)
        found[times > saturating_add(earliest, max(after_max_ms, self.step_ms))] = TimestampDoubt.MAYBE_FUTURE
        if before_max_ms is not None:
            may_be_past = times < saturating_add(latest, -before_max_ms)
            found[may_be_past & (found == TimestampDoubt.NONE)] = TimestampDoubt.MAYBE_PAST
            found[may_be_past & (found == TimestampDoubt.MAYBE_FUTURE)] = TimestampDoubt.MAYBE_EITHER
            found[times < saturating_add(earliest, -before_max_ms)] = TimestampDoubt.PAST
        found[times > saturating_add(latest, after_max_ms)] = TimestampDoubt.FUTURE
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the ranges in the form that `append_times_from` reads."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        return arrays | {"until_ms": self.until_ms, "step_ms": self.step_ms}


_ARRAYS = ("offsets", "times", "known_offsets", "known", "likely_offsets", "likely")


def _around(offsets: Int64s, first: int, end: int) -> slice:
    """Return the steps from the last one at or before `first` to the first one at or after `end`."""
    low = max(int(np.searchsorted(offsets, first, side="right")) - 1, 0)
    return slice(low, int(np.searchsorted(offsets, end - 1, side="right")) + 1)


def append_times_from(value: dict[str, Any]) -> AppendTimes:
    """Return the ranges from the form that `AppendTimes.as_json` returns."""
    arrays = {name: np.array(value[name], np.int64) for name in _ARRAYS}
    return AppendTimes(**arrays, until_ms=value["until_ms"], step_ms=value["step_ms"])


def append_times(rows: pa.Table, until_ms: int) -> AppendTimes:
    """Estimate a partition's ranges from its timestamp counts, which may be in any order.

    `until_ms` is the moment of reading.
    """
    known_offsets, known = _known(rows, until_ms)
    stamped = rows["timestamp_type"].to_numpy() == _BY_BROKER
    by_broker = (rows["last_place"].to_numpy()[stamped], rows["earliest"].to_numpy()[stamped])
    lowest, likely = _believed(rows, until_ms)
    step_ms = _step(np.concatenate((lowest[1], by_broker[1])))
    offsets, times = (np.append(of_producers, its) for of_producers, its in zip(lowest, by_broker, strict=True))
    if not len(offsets):
        return AppendTimes.between(_UNKNOWN_MS, until_ms)
    offsets, times = _steps(offsets, times, step_ms, until_ms)
    of_likely = _steps(*likely, step_ms, until_ms)
    found = AppendTimes(offsets, times, known_offsets, known, *of_likely, until_ms, step_ms)
    return replace(found, times=np.minimum(times, found.latest(offsets))) if len(known) else found


def _steps(offsets: Int64s, times: Int64s, step_ms: int, until_ms: int) -> tuple[Int64s, Int64s]:
    """Return the running maximum of the times, in whole steps: the offset and the time of each step."""
    by_offset = np.lexsort((times, offsets))
    steps = np.minimum(np.maximum.accumulate(times[by_offset]) // step_ms * step_ms, until_ms)
    is_new = np.append(True, steps[1:] != steps[:-1])[: len(steps)]
    return offsets[by_offset][is_new], steps[is_new]


def _known(rows: pa.Table, until_ms: int) -> tuple[Int64s, Int64s]:
    """Return the last offset and the end of each minute, where the broker's own times (LogAppendTime) show them."""
    its = rows["timestamp_type"].to_numpy() == _BY_BROKER
    places, latest = (rows[name].to_numpy()[its] for name in ("last_offset", "latest"))
    by_place = np.lexsort((latest, places))
    times = np.minimum.accumulate(latest[by_place][::-1])[::-1]  # the broker's clock may have been set back
    minutes = -(-times // _MINUTE_MS)
    is_last = np.append(minutes[1:] != minutes[:-1], True)[: len(minutes)]
    return places[by_place][is_last], np.minimum(minutes[is_last] * _MINUTE_MS, until_ms)


_Points = tuple[Int64s, Int64s]
"""Offsets and times."""


def _believed(rows: pa.Table, until_ms: int) -> tuple[_Points, _Points]:
    """Return the producers' times that are not ahead, by the lowest explanation and by the opposite one.

    In the opposite explanation, being ahead costs three times.
    """
    kinds = rows["kind"].to_numpy().astype(np.int8)
    votes = is_plausible_time(kinds) & (rows["timestamp_type"].to_numpy() != _BY_BROKER)
    first, last, records = (rows[name].to_numpy()[votes] for name in ("first_place", "last_place", "records"))
    earliest, latest = (in_milliseconds(rows[name].to_numpy(), kinds)[votes] for name in ("earliest", "latest"))
    # A row for several batches counts at both ends, because records between the ends may contradict it.
    ends = last > first
    places, times = np.concatenate((first, last[ends])), np.concatenate((earliest, latest[ends]))
    weights = np.concatenate((np.where(ends, -(-records // 2), records), -(-records[ends] // 2)))
    order = np.lexsort((times, places))
    places, times, weights = places[order], times[order], weights[order]
    values = times // COARSE_MS

    def points(chain: Int64s) -> _Points:
        is_before = times[chain] <= until_ms + SKEW_MS
        return places[chain][is_before], times[chain][is_before] - _ahead(times[chain], until_ms)

    if not (np.diff(values) < 0).any():  # no time contradicts another time
        return points(np.arange(len(values))), (_NOTHING, _NOTHING)
    # Fit in reverse with negated values, so that late times cost three times as much.
    lowest = len(values) - 1 - fit_non_decreasing(-values[::-1], weights[::-1])
    usable = np.flatnonzero(values <= (until_ms + SKEW_MS) // COARSE_MS)
    if len(lowest) == len(values):
        return points(lowest), (_NOTHING, _NOTHING)
    return points(lowest), points(usable[fit_non_decreasing(values[usable], weights[usable])])


def _ahead(times: Int64s, until_ms: int) -> int:
    """Return the time (ms) by which fitted times exceed the moment of reading, up to a gap of an hour."""
    ordered = np.unique(times)
    beyond = ordered[ordered > until_ms + SKEW_MS]
    before = ordered[ordered <= until_ms + SKEW_MS]
    if not len(beyond) or not len(before):
        return 0
    run = np.append(before[-1:], beyond)
    gaps = np.flatnonzero(np.diff(run) > HOUR_MS)
    end = int(gaps[0]) if len(gaps) else len(run) - 1
    return max(int(run[end]) - until_ms, 0)


def _step(times: Int64s) -> int:
    """Return the accuracy (ms) that limits the number of steps for these times (ms)."""
    span_ms = int(np.ptp(times)) if len(times) else 0
    return max(-(-span_ms // (_MOST_STEPS * _MINUTE_MS)), 1) * _MINUTE_MS


def saturating_subtract(left: Int64s, right: Int64s) -> Int64s:
    """Return left - right, limited to the bounds of int64."""
    plain = left - right
    overflown = ((left ^ right) & (left ^ plain)) < 0
    bounds = np.where(left < 0, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    return np.where(overflown, bounds, plain)


def saturating_add(times: Int64s, by: int) -> Int64s:
    """Return times + by, limited to the bounds of int64."""
    return saturating_subtract(times, np.full(len(times), -by, np.int64))
