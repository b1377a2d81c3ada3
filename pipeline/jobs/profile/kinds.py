"""What kind of number a timestamp is, many at a time, by the rules of `sluicegate.validation.units`."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from sluicegate.validation.units import Unit, plausible_range, unit_ranges

_EARLIEST_MS = 788_918_400_000  # 1995, as for `sluicegate.validation.units`


class Kind(IntEnum):
    """MILLISECONDS: read as it stands; whether it is late or ahead is another question. IMPLAUSIBLE: before the epoch
    that was set, as it stands or, where that would be far ahead, in micro- or nanoseconds.
    """

    MILLISECONDS = 0
    SECONDS = 1
    MICROSECONDS = 2
    NANOSECONDS = 3
    ZERO = 4
    NEGATIVE = 5
    IMPLAUSIBLE = 6


UNITS = {Kind.SECONDS: Unit.SECONDS, Kind.MICROSECONDS: Unit.MICROSECONDS, Kind.NANOSECONDS: Unit.NANOSECONDS}
_KIND_OF = {unit: kind for kind, unit in UNITS.items()}
_MS_PER_SECOND = 1000
_PER_MS = {Kind.MICROSECONDS: 1_000, Kind.NANOSECONDS: 1_000_000}
_MEANT = tuple(kind in (Kind.MILLISECONDS, *UNITS) for kind in Kind)


class Kinds:
    """Tells kinds as seen at one moment (ms since 1970). `epoch_ms`: what is before is implausible; ten years back
    where it is None.
    """

    def __init__(self, now_ms: int, epoch_ms: int | None = None) -> None:
        self._plausible = plausible_range(now_ms, epoch_ms)
        self._units = [(_KIND_OF[each.unit], each.low, each.high) for each in unit_ranges(now_ms, epoch_ms)]
        below = {kind: low for kind, low, _ in self._units}
        self._implausible = [
            (1, self._plausible[0] - 1),
            *((_EARLIEST_MS * per, below[kind] - 1) for kind, per in _PER_MS.items()),
        ]

    def of(self, timestamps: NDArray[np.int64]) -> NDArray[np.int8]:
        """The kind of each."""
        kinds = np.zeros(len(timestamps), np.int8)
        low, high = self._plausible
        odd = (timestamps < low) | (timestamps > high)
        if odd.any():
            for first, last in self._implausible:
                kinds[odd & (timestamps >= first) & (timestamps <= last)] = Kind.IMPLAUSIBLE
            for kind, first, last in self._units:
                kinds[odd & (timestamps >= first) & (timestamps <= last)] = kind
            kinds[timestamps == 0] = Kind.ZERO
            kinds[timestamps < 0] = Kind.NEGATIVE
        return kinds

    def all_plausible(self, earliest: int, latest: int) -> bool:
        """Whether all times between the two are milliseconds within the epoch and ten years from now."""
        return self._plausible[0] <= earliest and latest <= self._plausible[1]


def tells_a_time(kinds: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Whether a number of that kind is a plausible time, as it stands or converted."""
    return np.asarray(np.array(_MEANT)[kinds])


def in_milliseconds(timestamps: NDArray[np.int64], kinds: NDArray[np.int8]) -> NDArray[np.int64]:
    """As `sluicegate.validation.units.in_milliseconds`, many at a time; what is of no unit stays."""
    found = timestamps.copy()
    for kind in UNITS:
        its = kinds == kind
        if its.any():
            found[its] = found[its] // _PER_MS[kind] if kind in _PER_MS else found[its] * _MS_PER_SECOND
    return found
