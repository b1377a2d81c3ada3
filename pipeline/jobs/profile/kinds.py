"""Classifies arrays of timestamps, and groups a batch's records by kind and minute, without a loop over records.

The rules are those of `sluicegate.validation.units` and `odd_units`; tests compare the results.
"""

from bisect import bisect_left, bisect_right
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.units import ODD_UNITS, TimeFormat, TimeUnit, likely_range, plausible_range, unit_ranges

_EARLIEST_MS = 788_918_400_000  # 1995, as in `sluicegate.validation.units`


class TimestampKind(IntEnum):
    """The kinds of timestamps.

    MILLISECONDS is valid unchanged, whether late or ahead. IMPLAUSIBLE is before the epoch, either unchanged or, for a
    number that would be far ahead, in micro- or nanoseconds.
    """

    MILLISECONDS = 0
    SECONDS = 1
    MICROSECONDS = 2
    NANOSECONDS = 3
    ZERO = 4
    NEGATIVE = 5
    IMPLAUSIBLE = 6


UNITS = {
    TimestampKind.SECONDS: TimeUnit.SECONDS,
    TimestampKind.MICROSECONDS: TimeUnit.MICROSECONDS,
    TimestampKind.NANOSECONDS: TimeUnit.NANOSECONDS,
}
_KIND_OF = {unit: kind for kind, unit in UNITS.items()}
_MS_PER_SECOND = 1000
_PER_MS = {TimestampKind.MICROSECONDS: 1_000, TimestampKind.NANOSECONDS: 1_000_000}
_MEANT = tuple(kind in (TimestampKind.MILLISECONDS, *UNITS) for kind in TimestampKind)


class TimestampKinds:
    """Classifies numbers as of one point in time (ms since 1970).

    Times before `epoch_ms` are implausible; None means ten years before that point.
    """

    def __init__(self, now_ms: int, epoch_ms: int | None = None) -> None:
        self._plausible = plausible_range(now_ms, epoch_ms)
        self._units = [(_KIND_OF[each.unit], each.low, each.high) for each in unit_ranges(now_ms, epoch_ms)]
        below = {kind: low for kind, low, _ in self._units}
        self._implausible = [
            (1, self._plausible[0] - 1),
            *((_EARLIEST_MS * per, below[kind] - 1) for kind, per in _PER_MS.items()),
        ]

    def kinds_of(self, timestamps: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return the kind of each number."""
        kinds = np.zeros(len(timestamps), np.int8)
        low, high = self._plausible
        odd = (timestamps < low) | (timestamps > high)
        if odd.any():
            for first, last in self._implausible:
                kinds[odd & (timestamps >= first) & (timestamps <= last)] = TimestampKind.IMPLAUSIBLE
            for kind, first, last in self._units:
                kinds[odd & (timestamps >= first) & (timestamps <= last)] = kind
            kinds[timestamps == 0] = TimestampKind.ZERO
            kinds[timestamps < 0] = TimestampKind.NEGATIVE
        return kinds

    def all_plausible(self, earliest: int, latest: int) -> bool:
        """Return whether all times in the range are milliseconds after the epoch and within ten years of now."""
        return self._plausible[0] <= earliest and latest <= self._plausible[1]


def is_plausible_time(kinds: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return whether a number of each kind is a plausible time, either unchanged or converted."""
    return np.asarray(np.array(_MEANT)[kinds])


def in_milliseconds(timestamps: NDArray[np.int64], kinds: NDArray[np.int8]) -> NDArray[np.int64]:
    """Convert to ms as `sluicegate.validation.units.in_milliseconds` does. Numbers without a unit are unchanged."""
    found = timestamps.copy()
    for kind in UNITS:
        its = kinds == kind
        if its.any():
            found[its] = found[its] // _PER_MS[kind] if kind in _PER_MS else found[its] * _MS_PER_SECOND
    return found


Int64s = NDArray[np.int64]
_TIME_OF_DAY = 1_000_000  # modulus for the last six digits of YYYYMMDDhhmmss
_POSITIVE = range(1, LONG_MAX)


class LikelyUnits:
    """Finds the unit in which implausible numbers were perhaps written, as of one point in time (ms since 1970)."""

    def __init__(self, now_ms: int) -> None:
        self._plausible = likely_range(now_ms)
        self._ranges = [None if unit.is_written_out else self._range_of(unit) for unit in ODD_UNITS]

    def units_of(self, numbers: Int64s) -> NDArray[np.int8]:
        """Return each number's index in `ODD_UNITS`; -1 for a time in milliseconds, or if no unit fits."""
        found = np.full(len(numbers), -1, np.int8)
        earliest, latest = self._plausible
        odd = (numbers > 0) & ((numbers < earliest) | (numbers > latest))
        for index, (unit, bounds) in enumerate(zip(ODD_UNITS, self._ranges, strict=True)):
            left = odd & (found < 0)
            if not left.any():
                break
            if bounds is None:
                found[np.flatnonzero(left)[self._is_written_out(unit, numbers[left])]] = index
            else:
                found[left & (numbers >= bounds[0]) & (numbers <= bounds[1])] = index
        return found

    def names(self, numbers: Int64s) -> list[str | None]:
        """Return the name of each number's unit."""
        names = [*(unit.name for unit in ODD_UNITS), None]
        return [names[index] for index in self.units_of(numbers).tolist()]

    def _range_of(self, unit: TimeFormat) -> tuple[int, int]:
        """Return the first and the last number that is a plausible time in the unit. Larger numbers are later times."""

        def time_of(number: int) -> int:
            time = unit.time_of(number)
            assert time is not None  # only units that write out dates have gaps
            return time

        earliest, latest = self._plausible
        first = bisect_left(_POSITIVE, earliest, key=time_of)
        return _POSITIVE[first], _POSITIVE[bisect_right(_POSITIVE, latest, first, key=time_of) - 1]

    def _is_written_out(self, unit: TimeFormat, numbers: Int64s) -> NDArray[np.bool_]:
        """Return whether each number is a written-out date. There are few distinct dates, so each is checked once."""
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
    """Return whether the number has eight digits. This leaves few numbers to check further."""
    return len(str(number)) == 8


class Groups:
    """Groups of records with equal kind and minute, in the order of each group's first record."""

    def __init__(self, kinds: NDArray[np.int8], minutes: NDArray[np.int64]) -> None:
        first = int(minutes.min())
        self._counted: NDArray[np.uint16] | None = None
        if int(kinds.max()) == int(kinds.min()) and int(minutes.max()) - first < 1 << 16:
            self._counted = (minutes - first).astype(np.uint16)  # counting sort, in linear time
            self._order = np.argsort(self._counted, kind="stable")
        else:
            self._order = np.lexsort((minutes, kinds))  # stable, so groups keep the records' order
        changes = (np.diff(kinds[self._order]) != 0) | (np.diff(minutes[self._order]) != 0)
        self._starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
        self._ends = np.append(self._starts[1:], len(kinds))
        self._sorted = np.argsort(self._order[self._starts])

    @property
    def sizes(self) -> NDArray[Any]:
        """Return the number of records in each group."""
        return np.asarray((self._ends - self._starts)[self._sorted])

    def first_of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return each group's first value."""
        return np.asarray(values[self._order[self._starts]][self._sorted])

    def last_values(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return each group's last value."""
        return np.asarray(values[self._order[self._ends - 1]][self._sorted])

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of each group's values."""
        if self._counted is not None:
            sums = np.bincount(self._counted, values)  # exact, because a batch's bytes fit in a double
            found = sums[self._counted[self._order[self._starts]]].astype(np.int64)
        else:
            found = np.add.reduceat(values[self._order].astype(np.int64), self._starts)
        return np.asarray(found[self._sorted])

    def least(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return each group's smallest value."""
        return np.asarray(np.minimum.reduceat(values[self._order], self._starts)[self._sorted])

    def most(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return each group's largest value."""
        return np.asarray(np.maximum.reduceat(values[self._order], self._starts)[self._sorted])
