"""Diagnoses timestamps: the unit in which a number was probably written, and its distance from now.

`unit_of` returns another unit if the number is within ten years of now in that unit, but not in milliseconds.
`likely_unit` guesses more, from formats that are common in practice. `distance_step` counts distances in steps that
grow with the distance.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

PLAUSIBLE_MS = 10 * 365 * 86_400_000
_STEPS = ((86_400_000 * 365, "years"), (86_400_000, "days"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


class TimeUnit(StrEnum):
    """A unit that may be mistaken for milliseconds."""

    SECONDS = "seconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


_PER_MS = {TimeUnit.MICROSECONDS: 1_000, TimeUnit.NANOSECONDS: 1_000_000}
_MS_PER_SECOND = 1000
_LOOKS_LIKE = {unit: f"looks like {unit}: as milliseconds it is " for unit in TimeUnit}


@dataclass(frozen=True, slots=True)
class UnitRange:
    """A range of numbers, from `low` to `high` (inclusive), that are timestamps in `unit`."""

    unit: TimeUnit
    low: int
    high: int


def plausible_range(now_ms: int, epoch_ms: int | None = None) -> tuple[int, int]:
    """Return the first and last timestamps (ms) within ten years of now. `epoch_ms`, if given, replaces the first."""
    return now_ms - PLAUSIBLE_MS if epoch_ms is None else epoch_ms, now_ms + PLAUSIBLE_MS


def unit_ranges(now_ms: int, epoch_ms: int | None = None) -> tuple[UnitRange, ...]:
    """Return the ranges of numbers that count as another unit, unless they are plausible in milliseconds."""
    low, high = plausible_range(now_ms, epoch_ms)
    seconds = UnitRange(TimeUnit.SECONDS, -(-low // _MS_PER_SECOND), high // _MS_PER_SECOND)
    return (seconds, *(UnitRange(unit, low * per, high * per + per - 1) for unit, per in _PER_MS.items()))


def unit_of(timestamp: int, now_ms: int) -> TimeUnit | None:
    """Return the unit of `timestamp` if it is not plausible in milliseconds, or None if no unit fits."""
    low, high = plausible_range(now_ms)
    if timestamp <= 0 or low <= timestamp <= high:
        return None
    # These are the ranges of `unit_ranges`, but without allocations, because this runs for up to a thousand records per
    # request.
    if -(-low // _MS_PER_SECOND) <= timestamp <= high // _MS_PER_SECOND:
        return TimeUnit.SECONDS
    if low <= timestamp // _PER_MS[TimeUnit.MICROSECONDS] <= high:
        return TimeUnit.MICROSECONDS
    return TimeUnit.NANOSECONDS if low <= timestamp // _PER_MS[TimeUnit.NANOSECONDS] <= high else None


def in_milliseconds(timestamp: int, unit: TimeUnit) -> int:
    """Convert a number in `unit` to a timestamp (ms)."""
    return timestamp * _MS_PER_SECOND if unit is TimeUnit.SECONDS else timestamp // _PER_MS[unit]


def diagnose(timestamp: int, now_ms: int) -> str:
    """Return a sentence fragment about `timestamp`, which should be in ms, at `now_ms`."""
    if timestamp == 0:
        return "is 0, probably never set"
    if timestamp < 0:
        return "is negative, before 1970"
    unit = unit_of(timestamp, now_ms)
    if unit is not None:
        return f"{_LOOKS_LIKE[unit]}{distance(in_milliseconds(timestamp, unit), now_ms)}"
    return f"is {distance(timestamp, now_ms)}"


def distance(timestamp: int, now_ms: int) -> str:
    """Return how far a timestamp is from now, such as `0.4 s ago` or `2.0 h ahead`."""
    away = abs(timestamp - now_ms)
    for size, unit in _STEPS:  # noqa: B007  # the last one, if it is less than all
        if away >= size:
            break
    return f"{away / size:.1f} {unit} {'ago' if timestamp <= now_ms else 'ahead'}"


_DAY_MS = 86_400_000
_EARLIEST_MS = 788_918_400_000  # 1995; earlier timestamps are unlikely
_YEARS_AHEAD_MS = 10 * 365 * _DAY_MS
_1601_MS, _YEAR_1_MS, _1900_MS = -11_644_473_600_000, -62_135_596_800_000, -2_209_161_600_000
_YEAR_BY_DIGITS = {8: "%Y%m%d", 14: "%Y%m%d%H%M%S"}


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """A format of timestamps.

    `time_of` converts a number to a timestamp (ms), or returns None. `digits` is the length of a written-out date; 0
    means that larger numbers are later timestamps.
    """

    name: str
    time_of: Callable[[int], int | None]
    digits: int = 0

    @property
    def is_written_out(self) -> bool:
        """Return whether the format is a date written as digits."""
        return self.digits > 0


def _written_out(number: int) -> int | None:
    """Return the timestamp (ms) of 20261121 or 20261121093000, or None if the number is not a date."""
    form = _YEAR_BY_DIGITS.get(len(str(number)))
    if form is None:
        return None
    try:
        return int(datetime.strptime(str(number), form).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return None


ODD_UNITS = (
    TimeFormat("YYYYMMDD", lambda n: _written_out(n) if n < 10**8 else None, 8),
    TimeFormat("YYYYMMDDhhmmss", lambda n: _written_out(n) if n > 10**8 else None, 14),
    TimeFormat("days since 1970", lambda n: n * _DAY_MS),
    TimeFormat("Excel's days since 1900", lambda n: n * _DAY_MS + _1900_MS),
    TimeFormat("seconds", lambda n: n * 1000),
    TimeFormat("seconds × 10", lambda n: n * 100),
    TimeFormat("microseconds", lambda n: n // 1000),
    TimeFormat("nanoseconds", lambda n: n // 1_000_000),
    TimeFormat("100 ns since 1601", lambda n: n // 10_000 + _1601_MS),
    TimeFormat("100 ns since the year 1", lambda n: n // 10_000 + _YEAR_1_MS),
)


def likely_range(now_ms: int) -> tuple[int, int]:
    """Return the first and last likely timestamps (ms)."""
    return _EARLIEST_MS, now_ms + _YEARS_AHEAD_MS


def likely_unit(number: int, now_ms: int) -> str | None:
    """Return the first unit in which `number` is a timestamp from 1995 to ten years from now.

    Returns None if there is no such unit, or if the number is such a timestamp in milliseconds. The result is a guess
    for diagnoses, and never used to convert a timestamp.
    """
    earliest, latest = likely_range(now_ms)
    if number <= 0 or earliest <= number <= latest:
        return None
    return next(_unit_names(number, now_ms), None)


def _unit_names(number: int, now_ms: int) -> Iterator[str]:
    earliest, latest = likely_range(now_ms)
    for unit in ODD_UNITS:
        time = unit.time_of(number)
        if time is not None and earliest <= time <= latest:
            yield unit.name


DISTANCE_STEPS = 256
_SUBDIVISION_BITS = 2
_FINE = 1 << _SUBDIVISION_BITS


def distance_step(away_ms: int) -> int:
    """Return the step of a distance (ms, not negative). There are four steps per power of two.

    A step is about a fifth of the distance, and 256 steps cover every int64.
    """
    if away_ms < _FINE:
        return away_ms
    power = away_ms.bit_length() - 1
    return _FINE * (power - 1) + ((away_ms >> (power - _SUBDIVISION_BITS)) & (_FINE - 1))
