"""What a timestamp was probably meant to be: the rules for units, and their words.

Another unit is named when reading the number in it lands within ten years of now and in milliseconds it does not.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

_DAY_MS = 86_400_000
_EARLIEST_MS = 788_918_400_000  # 1995: nothing that is read as a unit was meant to be before
_YEARS_AHEAD_MS = 10 * 365 * _DAY_MS
_1601_MS, _YEAR_1_MS, _1900_MS = -11_644_473_600_000, -62_135_596_800_000, -2_209_161_600_000
_YEAR_BY_DIGITS = {8: "%Y%m%d", 14: "%Y%m%d%H%M%S"}


@dataclass(frozen=True, slots=True)
class OddUnit:
    """`time_of`: the moment (ms) that a number in it stands for, None for none. `digits`: how many a date that is
    written out has; 0 where larger numbers are later times.
    """

    name: str
    time_of: Callable[[int], int | None]
    digits: int = 0

    @property
    def is_written_out(self) -> bool:
        """Whether it is a date in digits."""
        return self.digits > 0


def _written_out(number: int) -> int | None:
    """20261121 and 20261121093000."""
    form = _YEAR_BY_DIGITS.get(len(str(number)))
    if form is None:
        return None
    try:
        return int(datetime.strptime(str(number), form).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return None


UNITS = (
    OddUnit("YYYYMMDD", lambda n: _written_out(n) if n < 10**8 else None, 8),
    OddUnit("YYYYMMDDhhmmss", lambda n: _written_out(n) if n > 10**8 else None, 14),
    OddUnit("days since 1970", lambda n: n * _DAY_MS),
    OddUnit("Excel's days since 1900", lambda n: n * _DAY_MS + _1900_MS),
    OddUnit("seconds", lambda n: n * 1000),
    OddUnit("seconds × 10", lambda n: n * 100),
    OddUnit("microseconds", lambda n: n // 1000),
    OddUnit("nanoseconds", lambda n: n // 1_000_000),
    OddUnit("100 ns since 1601", lambda n: n // 10_000 + _1601_MS),
    OddUnit("100 ns since the year 1", lambda n: n // 10_000 + _YEAR_1_MS),
)


def likely_range(now_ms: int) -> tuple[int, int]:
    """The first and the last moment (ms) that a number is taken to mean."""
    return _EARLIEST_MS, now_ms + _YEARS_AHEAD_MS


def likely_unit(number: int, now_ms: int) -> str | None:
    """The first unit in which `number` is a time from 1995 to ten years from now; None where there is none, or where
    it is one in milliseconds.
    """
    earliest, latest = likely_range(now_ms)
    if number <= 0 or earliest <= number <= latest:
        return None
    return next(_names(number, now_ms), None)


def _names(number: int, now_ms: int) -> Iterator[str]:
    earliest, latest = likely_range(now_ms)
    for unit in UNITS:
        time = unit.time_of(number)
        if time is not None and earliest <= time <= latest:
            yield unit.name


PLAUSIBLE_MS = 10 * 365 * 86_400_000
_STEPS = ((86_400_000 * 365, "years"), (86_400_000, "days"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


class Unit(StrEnum):
    """What someone took for milliseconds."""

    SECONDS = "seconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


_PER_MS = {Unit.MICROSECONDS: 1_000, Unit.NANOSECONDS: 1_000_000}
_MS_PER_SECOND = 1000
_LOOKS_LIKE = {unit: f"looks like {unit}: as milliseconds it is " for unit in Unit}


@dataclass(frozen=True, slots=True)
class UnitRange:
    """The numbers from `low` to `high`, both included, are times in `unit`."""

    unit: Unit
    low: int
    high: int


def plausible_range(now_ms: int, epoch_ms: int | None = None) -> tuple[int, int]:
    """The times in ms, both included, that are within ten years of now; `epoch_ms` is another beginning."""
    return now_ms - PLAUSIBLE_MS if epoch_ms is None else epoch_ms, now_ms + PLAUSIBLE_MS


def unit_ranges(now_ms: int, epoch_ms: int | None = None) -> tuple[UnitRange, ...]:
    """Which numbers are read in another unit, beyond those that are plausible as they are."""
    low, high = plausible_range(now_ms, epoch_ms)
    seconds = UnitRange(Unit.SECONDS, -(-low // _MS_PER_SECOND), high // _MS_PER_SECOND)
    return (seconds, *(UnitRange(unit, low * per, high * per + per - 1) for unit, per in _PER_MS.items()))


def unit_of(timestamp: int, now_ms: int) -> Unit | None:
    """The unit that `timestamp` is in, where it is not plausible in milliseconds."""
    low, high = plausible_range(now_ms)
    if timestamp <= 0 or low <= timestamp <= high:
        return None
    # As unit_ranges has it, without making it: up to a thousand records of a request are told their unit.
    if -(-low // _MS_PER_SECOND) <= timestamp <= high // _MS_PER_SECOND:
        return Unit.SECONDS
    if low <= timestamp // _PER_MS[Unit.MICROSECONDS] <= high:
        return Unit.MICROSECONDS
    return Unit.NANOSECONDS if low <= timestamp // _PER_MS[Unit.NANOSECONDS] <= high else None


def in_milliseconds(timestamp: int, unit: Unit) -> int:
    """The time that a number in `unit` stands for, in ms."""
    return timestamp * _MS_PER_SECOND if unit is Unit.SECONDS else timestamp // _PER_MS[unit]


def diagnose(timestamp: int, now_ms: int) -> str:
    """A sentence fragment about `timestamp` (claimed ms) as seen at `now_ms`."""
    if timestamp == 0:
        return "is 0, probably never set"
    if timestamp < 0:
        return "is negative, before 1970"
    unit = unit_of(timestamp, now_ms)
    if unit is not None:
        return f"{_LOOKS_LIKE[unit]}{distance(in_milliseconds(timestamp, unit), now_ms)}"
    return f"is {distance(timestamp, now_ms)}"


def distance(timestamp: int, now_ms: int) -> str:
    """How far a time is from now, as `0.4 s ago` or `2.0 h ahead`."""
    away = abs(timestamp - now_ms)
    for size, unit in _STEPS:  # noqa: B007 (of what is less than all, the last)
        if away >= size:
            break
    return f"{away / size:.1f} {unit} {'ago' if timestamp <= now_ms else 'ahead'}"
