"""Computes a partition's clock: the likeliest append time of each record. A repair writes this time to records without
a usable time. `append_times` bounds the clock's error, and decides which timestamps are invalid.

In a partition's offset order, valid times increase; a time that is ahead or late deviates from its neighbours. The
clock is therefore the non-decreasing function that best fits the partition's plausible times and does not exceed the
moment of reading; see `fit_non_decreasing`. Times within ten minutes of each other count as equal. A number in another
unit that converts to a plausible time counts like any other time, so the clock continues after the point at which
invalid timestamps begin. Between its points the clock is interpolated. It is accurate to about a minute, which is the
resolution of the counts.

The clock cannot detect late records at the very beginning, because no neighbours contradict them. In a topic that was
written by replaying old records, it follows the records' own times.
"""

import math
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SKEW_MS = 60_000
COARSE_MS = 10 * 60_000


@dataclass(frozen=True, slots=True)
class Clock:
    """Offsets in ascending order, and the time (ms) at each offset. There is at least one point."""

    offsets: NDArray[np.int64]
    times: NDArray[np.int64]

    @classmethod
    def fixed_at(cls, time_ms: int) -> "Clock":
        """Return a clock that always shows the same time."""
        return cls(np.zeros(1, np.int64), np.full(1, time_ms, np.int64))

    def at(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the estimated append time (ms) at each offset."""
        base = self.times[0]  # floats represent the differences exactly
        since = np.interp(offsets, self.offsets, (self.times - base).astype(np.float64))
        return np.asarray(since.astype(np.int64) + base)


def simplify_clock(clock: Clock, tolerance_ms: int) -> Clock:
    """Return a clock with fewer points that differs from the given clock by at most the tolerance at the old points.

    Steady times need two points; the end of a pause needs one more.
    """
    points = list(zip(clock.offsets.tolist(), clock.times.tolist(), strict=True))
    kept, line = [0], _Line(points[0], tolerance_ms)
    for place, point in enumerate(points[1:], 1):
        if line.takes(point):
            continue
        if kept[-1] != place - 1:
            kept.append(place - 1)
            line = _Line(points[place - 1], tolerance_ms)
            if line.takes(point):
                continue
        kept.append(place)
        line = _Line(point, tolerance_ms)
    if kept[-1] != len(points) - 1:
        kept.append(len(points) - 1)
    return Clock(clock.offsets[kept], clock.times[kept])


class _Line:
    """A line from a point (offset, time) through all the points that it accepted, each within the tolerance."""

    def __init__(self, start: tuple[int, int], tolerance_ms: int) -> None:
        self._start = start
        self._tolerance = tolerance_ms
        self._least, self._most = -math.inf, math.inf

    def takes(self, point: tuple[int, int]) -> bool:
        """Return whether the line can end at the point."""
        run, rise = point[0] - self._start[0], point[1] - self._start[1]
        if run == 0:
            return rise <= self._tolerance
        if not self._least <= rise / run <= self._most:
            return False
        self._least = max(self._least, (rise - self._tolerance) / run)
        self._most = min(self._most, (rise + self._tolerance) / run)
        return True


def clock_of(
    first_offsets: NDArray[np.int64],
    last_offsets: NDArray[np.int64],
    earliest: NDArray[np.int64],
    latest: NDArray[np.int64],
    weights: NDArray[np.int64],
    now_ms: int,
) -> Clock | None:
    """Return a clock for rows of plausible times in any order; None if no time is before now."""
    usable = np.flatnonzero(latest <= now_ms + SKEW_MS)
    if not len(usable):
        return None
    order = usable[np.lexsort((earliest[usable], first_offsets[usable]))]
    # Even the clocks of healthy producers differ by minutes, so smaller decreases do not count.
    chain = order[fit_non_decreasing(earliest[order] // COARSE_MS, weights[order])]
    offsets = np.concatenate((first_offsets[chain], last_offsets[chain]))
    times = np.concatenate((earliest[chain], latest[chain]))
    by_offset = np.lexsort((times, offsets))
    # Rows of different producers overlap by up to a minute.
    rising = np.maximum.accumulate(times[by_offset])
    return Clock(offsets[by_offset], rising)


_AHEAD_COSTS = 3


def fit_non_decreasing(values: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the times on the best-fitting non-decreasing step function, in ascending order.

    Each time is on the function, late (below it) or ahead of it. A late time costs its weight, because replays and
    backfills are common. A time that is ahead costs three times its weight, because the clock would otherwise be wrong.
    Increasing times are therefore on the function, a single record that is ahead deviates, and old records between or
    after current records are late.

    The lowest total cost for each height of the function is itself non-decreasing in the height. It is stored as a list
    of jumps. A new time adds one jump and reduces others, and these changes are recorded so that they can be undone in
    reverse order. The total cost is O(n log n).
    """
    ranks = np.unique(values, return_inverse=True)[1].tolist()
    heights: list[int] = []  # positions of the jumps, in ascending order
    jumps: dict[int, int] = {}
    undone: list[list[tuple[int, int]]] = []  # for each time, the height of a jump and its previous size
    for rank, weight in zip(ranks, weights.tolist(), strict=True):
        before = jumps.get(rank, 0)
        if not before:
            insort(heights, rank)
        # Below this time the record is ahead of the function; at this height it is on the function.
        jumps[rank] = before + weight * _AHEAD_COSTS
        changes = [(rank, before)]
        # Above this time the record is late, which reduces the advantage of such heights.
        place, left = bisect_right(heights, rank), weight
        end = place
        while left and end < len(heights):
            jump = jumps[heights[end]]
            changes.append((heights[end], jump))
            if jump > left:
                jumps[heights[end]] = jump - left
                break
            left -= jump
            del jumps[heights[end]]
            end += 1
        del heights[place:end]
        undone.append(changes)
    return _walked_back(ranks, heights, jumps, undone)


def _walked_back(
    ranks: list[int], heights: list[int], jumps: dict[int, int], undone: list[list[tuple[int, int]]]
) -> NDArray[np.int64]:
    on_it = []
    height = len(ranks)
    for place in range(len(ranks) - 1, -1, -1):
        at = bisect_right(heights, height)
        if at == 0:
            break  # all earlier times are ahead of the function
        height = heights[at - 1]
        if ranks[place] == height:
            on_it.append(place)
        for jumped, before in undone[place]:
            if before and jumped not in jumps:
                insort(heights, jumped)
            if before:
                jumps[jumped] = before
            else:
                del jumps[jumped]
                del heights[bisect_left(heights, jumped)]
    return np.array(on_it[::-1], np.int64)
