"""Which unit a number that is no plausible time was perhaps written in: what people have been seen to write.

A guess for people to read, from what the number's size allows; nothing is converted by it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

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
