"""Which unit numbers that are no plausible time were perhaps written in, many at a time.

The rules are those of `sluicegate.validation.units`; a test compares the two.
"""

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

from sluicegate.protocol.int64 import LONG_MAX
from sluicegate.validation.odd_units import UNITS, OddUnit, likely_range

Int64s = NDArray[np.int64]
_TIME_OF_DAY = 1_000_000  # the last six digits of YYYYMMDDhhmmss
_POSITIVE = range(1, LONG_MAX)


class LikelyUnits:
    """As seen at one moment (ms since 1970)."""

    def __init__(self, now_ms: int) -> None:
        self._plausible = likely_range(now_ms)
        self._ranges = [None if unit.is_written_out else self._range_of(unit) for unit in UNITS]

    def of(self, numbers: Int64s) -> NDArray[np.int8]:
        """For each number the index of its unit in `UNITS`; -1 where it is in none, or a time in milliseconds."""
        found = np.full(len(numbers), -1, np.int8)
        earliest, latest = self._plausible
        odd = (numbers > 0) & ((numbers < earliest) | (numbers > latest))
        for index, (unit, bounds) in enumerate(zip(UNITS, self._ranges, strict=True)):
            left = odd & (found < 0)
            if not left.any():
                break
            if bounds is None:
                found[np.flatnonzero(left)[self._is_written_out(unit, numbers[left])]] = index
            else:
                found[left & (numbers >= bounds[0]) & (numbers <= bounds[1])] = index
        return found

    def names(self, numbers: Int64s) -> list[str | None]:
        """The name of each number's unit."""
        names = [*(unit.name for unit in UNITS), None]
        return [names[index] for index in self.of(numbers).tolist()]

    def _range_of(self, unit: OddUnit) -> tuple[int, int]:
        """The first and the last number that is a plausible time in the unit; larger numbers are later times."""

        def time_of(number: int) -> int:
            time = unit.time_of(number)
            assert time is not None  # only dates that are written out have gaps
            return time

        earliest, latest = self._plausible
        first = bisect_left(_POSITIVE, earliest, key=time_of)
        return _POSITIVE[first], _POSITIVE[bisect_right(_POSITIVE, latest, first, key=time_of) - 1]

    def _is_written_out(self, unit: OddUnit, numbers: Int64s) -> NDArray[np.bool_]:
        """There are few dates, so each is looked at once."""
        has_time = unit.digits > 8
        dates, places = np.unique(numbers // _TIME_OF_DAY if has_time else numbers, return_inverse=True)
        earliest, latest = self._plausible
        midnight = _TIME_OF_DAY if has_time else 1
        times = [unit.time_of(date * midnight) if _is_date(date) else None for date in dates.tolist()]
        found = np.array([time is not None and earliest <= time <= latest for time in times], np.bool_)[places]
        if not has_time:
            return found
        hours, minutes, seconds = numbers % _TIME_OF_DAY // 10_000, numbers % 10_000 // 100, numbers % 100
        return np.asarray(found & (hours < 24) & (minutes < 60) & (seconds < 60))


def _is_date(number: int) -> bool:
    """Whether it has the digits of one, so that `LikelyUnits` asks of few."""
    return len(str(number)) == 8
