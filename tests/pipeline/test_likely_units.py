"""The likely units of many timestamps at once equal the likely units of single timestamps."""

import random

import numpy as np
import pytest

from sluicegate.pipeline.jobs.profile.kinds import LikelyUnits
from sluicegate.validation.units import ODD_UNITS, likely_unit

NOW = 1_790_000_000_000
DAY = 86_400_000
SEVEN = {
    "days since 1970": NOW // DAY,
    "Excel's days since 1900": (NOW + 2_209_161_600_000) // DAY,
    "YYYYMMDD": 20_260_921,
    "YYYYMMDDhhmmss": 20_260_921_143_500,
    "seconds × 10": NOW // 100,
    "100 ns since 1601": (NOW + 11_644_473_600_000) * 10_000,
    "100 ns since the year 1": (NOW + 62_135_596_800_000) * 10_000,
}


def random_numbers() -> list[int]:
    draw = random.Random(42)
    digits = [draw.randrange(10**n, 10 ** (n + 1)) for n in range(18) for _ in range(300)]
    dates = [draw.randrange(19_900_000, 20_400_000) for _ in range(2000)]
    moments = [date * 1_000_000 + draw.randrange(300_000) for date in dates]
    around = [number + step for number in SEVEN.values() for step in range(-70, 70)]
    return [*digits, *dates, *moments, *around, 0, -1, 1, -(2**63), 2**63 - 1]


def unit_bounds() -> list[int]:
    """Return the numbers on both sides of each unit's limits, which are found by bisection with the function itself."""
    found = []
    for unit in ODD_UNITS:
        if not unit.is_written_out:
            for edge in (788_918_400_000, NOW + 3650 * DAY):
                low, high = 1, 2**63 - 1
                while low < high:
                    middle = (low + high) // 2
                    time = unit.time_of(middle)
                    assert time is not None
                    low, high = (low, middle) if time >= edge else (middle + 1, high)
                found += [min(max(low + step, 1), 2**63 - 1) for step in (-2, -1, 0, 1, 10_000)]
    return found


@pytest.mark.parametrize("numbers", [random_numbers(), unit_bounds()], ids=["drawn", "bounds"])
def test_arrays_agree_with_single_numbers(numbers: list[int]) -> None:
    together = LikelyUnits(NOW).names(np.array(numbers, np.int64))

    assert together == [likely_unit(number, NOW) for number in numbers]


def test_likely_units_distinguish_seven_units() -> None:
    assert LikelyUnits(NOW).names(np.array([*SEVEN.values()], np.int64)) == [*SEVEN]
