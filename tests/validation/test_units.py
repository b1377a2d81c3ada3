"""The probable meaning of a wrong timestamp is found."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.validation.units import DISTANCE_STEPS, diagnose, distance_step, likely_unit

NOW = 1_800_000_000_000
DAY = 86_400_000


@pytest.mark.parametrize(
    ("timestamp", "said"),
    [
        ((NOW - 400) * 1_000_000, "looks like nanoseconds: as milliseconds it is 0.4 s ago"),
        ((NOW - 90_000) * 1000, "looks like microseconds: as milliseconds it is 1.5 min ago"),
        (NOW // 1000, "looks like seconds: as milliseconds it is 0.0 s ago"),
        (0, "is 0, probably never set"),
        (-5, "is negative, before 1970"),
        (NOW + 2 * 3_600_000, "is 2.0 h ahead"),
        (NOW - 3 * DAY, "is 3.0 days ago"),
        (NOW + 730 * DAY, "is 2.0 years ahead"),
        (2**63 - 1, f"is {(2**63 - 1 - NOW) / (365 * DAY):.1f} years ahead"),
    ],
)
def test_diagnosis_names_the_likely_unit_of_a_bad_timestamp(timestamp: int, said: str) -> None:
    assert diagnose(timestamp, NOW) == said


MOMENT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
NOW_2026 = int(MOMENT.timestamp() * 1000)


@pytest.mark.parametrize(
    ("number", "unit"),
    [
        (46_347, "Excel's days since 1900"),  # the value in a spreadsheet for 2026-11-21
        ((MOMENT - datetime(1970, 1, 1, tzinfo=UTC)).days, "days since 1970"),
        (NOW_2026 // 100, "seconds × 10"),
        (978_307_200, "seconds"),  # 2001-01-01
        (20_261_121, "YYYYMMDD"),
        (20_261_121_093_000, "YYYYMMDDhhmmss"),
        (1_280_000_000_000_000, "microseconds"),
        (1_280_000_000_000_000_000, "nanoseconds"),
        (116_444_736_000_000_000 + NOW_2026 * 10_000, "100 ns since 1601"),  # the epoch of 1970 as a FILETIME
        (621_355_968_000_000_000 + NOW_2026 * 10_000, "100 ns since the year 1"),  # DateTime.Ticks of .NET
        (5_000_000, None),
        (NOW_2026, None),
        (0, None),
        (-5, None),
        (2**63 - 1, None),
    ],
)
def test_likely_time_unit_of_a_number_is_recognized(number: int, unit: str | None) -> None:
    assert likely_unit(number, NOW_2026) == unit


LONGEST = 2**63 - 1


def shortest_distance(step: int) -> int:
    """Return the shortest distance (ms) within a step: four equal steps for each power of two."""
    if step < 4:
        return step
    power, part = divmod(step, 4)
    return (4 + part) << (power - 1)


@given(st.integers(0, LONGEST))
def test_distance_lies_within_its_computed_step(away: int) -> None:
    step = distance_step(away)

    assert 0 <= step < DISTANCE_STEPS
    assert shortest_distance(step) <= away < shortest_distance(step + 1)


def test_distance_step_width_is_at_most_a_quarter_of_its_distance() -> None:
    for step in range(4, distance_step(LONGEST)):
        assert shortest_distance(step) < shortest_distance(step + 1) <= shortest_distance(step) * 1.25
