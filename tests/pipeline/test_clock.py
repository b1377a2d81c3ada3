"""Append times are estimated from the timestamps of records."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.pipeline.jobs.profile.clock import Clock, clock_of, fit_non_decreasing, simplify_clock

NOW = 1_764_000_000_000
HOUR = 3_600_000


def clock_of_rows(*rows: tuple[int, int, int], now: int = NOW) -> Clock | None:
    """Return the clock estimated from rows of (offset, time, weight)."""
    offsets, times, weights = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return clock_of(offsets, offsets, times, times, weights, now)


def clock_values_at(found: Clock | None, *offsets: int) -> list[int]:
    assert found is not None
    return found.at(np.array(offsets, np.int64)).tolist()


def test_the_clock_interpolates_between_valid_timestamps() -> None:
    found = clock_of_rows((0, NOW - 10 * HOUR, 1), (100, NOW - 8 * HOUR, 1), (200, NOW - HOUR, 1))

    assert clock_values_at(found, 0, 50, 100, 200, 300) == [
        NOW - 10 * HOUR,
        NOW - 9 * HOUR,
        NOW - 8 * HOUR,
        NOW - HOUR,
        NOW - HOUR,
    ]


@pytest.mark.parametrize("odd", [NOW - 2 * HOUR, NOW - 50 * HOUR, NOW + 5 * HOUR])
def test_outliers_do_not_move_the_clock(odd: int) -> None:
    good = [(i * 10, NOW - (20 - i) * HOUR, 5) for i in range(15)]

    found = clock_of_rows(*good[:8], (75, odd, 5), *good[8:])

    assert clock_values_at(found, 75)[0] == pytest.approx(NOW - 12.5 * HOUR, abs=1)


def test_the_clock_ignores_timestamps_after_the_time_of_reading() -> None:
    found = clock_of_rows((0, NOW - HOUR, 1), (10, NOW - 1000, 1), (20, NOW + HOUR, 100))

    assert clock_values_at(found, 20) == [NOW - 1000]


def test_the_clock_follows_the_more_frequent_of_two_contradicting_times() -> None:
    many, few = [(i, NOW - 5 * HOUR + i, 9) for i in range(0, 100, 2)], [(i, NOW - HOUR, 1) for i in range(1, 100, 2)]

    found = clock_of_rows(*many, *few)

    assert clock_values_at(found, 50)[0] == NOW - 5 * HOUR + 50


def test_producers_that_are_minutes_apart_move_the_clock_by_minutes_at_most() -> None:
    rows = [(i * 2 + j, NOW - 10 * HOUR + i * 60_000 - j * 150_000, 1) for i in range(300) for j in range(2)]

    found = clock_of_rows(*rows)

    away = [abs(a - (NOW - 10 * HOUR + i * 60_000)) for i, a in enumerate(clock_values_at(found, *range(0, 600, 2)))]
    assert max(away) <= 150_000 + 60_000


def test_late_records_do_not_make_current_ones_count_as_future() -> None:
    current = [(i * 2, NOW - HOUR + i * 1000, 4) for i in range(100)]
    replayed = [(i * 2 + 1, NOW - 500 * HOUR + i * 1000, 6) for i in range(100)]

    found = clock_of_rows(*current, *replayed)

    assert clock_values_at(found, 198)[0] == NOW - HOUR + 99_000


def test_clock_ignores_late_records_if_times_are_unordered() -> None:
    hours = [5, 3, 9, 1, 7, 4, 8, 2, 6]

    found = clock_of_rows(*((i, NOW - hour * HOUR, 1) for i, hour in enumerate(hours)))

    assert clock_values_at(found, *range(9)) == [NOW - h * HOUR for h in (5, 3, 2, 1, 1, 1, 1, 1, 1)]


def test_timestamps_only_after_the_time_of_reading_give_no_clock() -> None:
    assert clock_of_rows((0, NOW + HOUR, 1)) is None


TIMES = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 5)), min_size=1, max_size=12)


@given(TIMES)
def test_the_fitted_clock_is_the_best_non_decreasing_fit(times: list[tuple[int, int]]) -> None:
    values, weights = (list(column) for column in zip(*times, strict=True))

    on_it = set(fit_non_decreasing(np.array(values), np.array(weights)).tolist())

    best = least_cost(times, [None] * len(times))
    assert least_cost(times, [i in on_it for i in range(len(times))]) == best


def least_cost(times: list[tuple[int, int]], message: list[bool | None]) -> float:
    """Return the least cost of all such functions, or of those through the given points, by trying all heights."""
    heights = range(-1, 8)
    cost = dict.fromkeys(heights, 0.0)
    for (value, weight), on_it in zip(times, message, strict=True):
        lowest, added = math.inf, {}
        for height in heights:
            lowest = min(lowest, cost[height])
            here = 0 if height == value else weight if height > value else 3 * weight
            added[height] = lowest + (here if on_it is None or on_it == (height == value) else math.inf)
        cost = added
    return min(cost.values())


STEPS = st.lists(
    st.tuples(st.integers(0, 5000), st.sampled_from([0, 1, 500, 1000, 60_000, HOUR, 9 * HOUR])), min_size=1
)


@given(STEPS)
def test_a_simplified_clock_is_within_the_tolerance(steps: list[tuple[int, int]]) -> None:
    offsets, times = (np.cumsum(np.array(column, np.int64)) for column in zip(*steps, strict=True))
    whole = Clock(offsets, times + NOW)

    found = simplify_clock(whole, 60_000)

    # If there are several points at one offset, the time is between those of the first and the last point.
    away = found.at(offsets) - whole.times
    for offset in np.unique(offsets):
        here = away[offsets == offset]
        assert here.min() <= 60_001
        assert here.max() >= -60_001
    assert (found.offsets[-1], found.times[-1]) == (whole.offsets[-1], whole.times[-1])


def test_the_clock_of_a_year_of_working_days_has_few_points() -> None:
    minutes = np.array([day * 1440 + minute for day in range(365) for minute in range(480, 1080)], np.int64)
    whole = Clock(np.arange(len(minutes)) * 100, NOW + minutes * 60_000)

    found = simplify_clock(whole, 60_000)

    assert len(found.offsets) < 4 * 365
    assert int(np.abs(found.at(whole.offsets) - whole.times).max()) <= 60_000
