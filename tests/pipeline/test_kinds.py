"""The kinds of many timestamps at once equal the kinds of single timestamps."""

from datetime import UTC, datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.pipeline.jobs.profile.kinds import UNITS, TimestampKind, TimestampKinds
from sluicegate.validation.units import TimeUnit, in_milliseconds, unit_of

NOW = 1_764_000_000_000
PER_MS = (10**3, 10**6)
TEN_YEARS = 10 * 365 * 86_400_000
NEAR_BOUNDS = [
    edge + step
    for moment in (NOW - TEN_YEARS, NOW, NOW + TEN_YEARS)
    for edge in (moment // 1000, moment, moment * 1000, moment * 1_000_000)
    for step in (-1_000_001, -1001, -1, 0, 1, 999, 1000, 999_999, 1_000_000)
]
TIMES = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(NEAR_BOUNDS) | st.integers(-5, 5)


@given(st.lists(TIMES, min_size=1, max_size=50))
def test_timestamp_kinds_of_arrays_equal_those_of_single_timestamps(times: list[int]) -> None:
    found = TimestampKinds(NOW).kinds_of(np.array(times, np.int64))

    for time, kind in zip(times, found.tolist(), strict=True):
        if time <= 0:
            assert kind == (TimestampKind.ZERO if time == 0 else TimestampKind.NEGATIVE)
        else:
            assert UNITS.get(TimestampKind(kind)) == unit_of(time, NOW)
            assert (kind == TimestampKind.IMPLAUSIBLE) == is_implausible(time)


def is_implausible(time: int) -> bool:
    """Return whether a time is older than ten years, or since 1995 in micro- or nanoseconds, and in no unit with a
    later result."""
    begin = int(datetime(1995, 1, 1, tzinfo=UTC).timestamp()) * 1000
    since_1995 = any(begin * per <= time < (NOW - TEN_YEARS) * per for per in PER_MS)
    return (0 < time < NOW - TEN_YEARS or since_1995) and unit_of(time, NOW) is None


def test_recognizes_a_moment_in_each_unit() -> None:
    for unit, number in (
        (TimeUnit.SECONDS, NOW // 1000),
        (TimeUnit.MICROSECONDS, NOW * 1000 + 7),
        (TimeUnit.NANOSECONDS, NOW * 1_000_000 + 7),
    ):
        assert unit_of(number, NOW) is unit
        assert in_milliseconds(number, unit) // 1000 == NOW // 1000
    assert unit_of(NOW + TEN_YEARS, NOW) is None
    assert unit_of(4_000_000_000_000, NOW) is None  # the year 2096 is not in another unit, only far ahead
