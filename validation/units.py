"""What a timestamp was probably meant to be: the rules for units, and their words.

Another unit is named when reading the number in it lands within ten years of now and in milliseconds it does not.
"""

from dataclasses import dataclass
from enum import StrEnum

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
