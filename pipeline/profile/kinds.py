"""What kind of number a timestamp is, many at a time, by the rules of `validation.units`."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from validation.units import Unit, plausible_range, unit_ranges


class Kind(IntEnum):
    """MILLISECONDS: read as it stands; whether it is late or ahead is another question."""

    MILLISECONDS = 0
    SECONDS = 1
    MICROSECONDS = 2
    NANOSECONDS = 3
    ZERO = 4
    NEGATIVE = 5


UNITS = {Kind.SECONDS: Unit.SECONDS, Kind.MICROSECONDS: Unit.MICROSECONDS, Kind.NANOSECONDS: Unit.NANOSECONDS}
_KIND_OF = {unit: kind for kind, unit in UNITS.items()}


class Kinds:
    """Tells kinds as seen at one moment (ms since the epoch)."""

    def __init__(self, now_ms: int) -> None:
        self._plausible = plausible_range(now_ms)
        self._units = [(_KIND_OF[each.unit], each.low, each.high) for each in unit_ranges(now_ms)]

    def of(self, timestamps: NDArray[np.int64]) -> NDArray[np.int8]:
        """The kind of each."""
        kinds = np.zeros(len(timestamps), np.int8)
        low, high = self._plausible
        odd = (timestamps < low) | (timestamps > high)
        if odd.any():
            for kind, first, last in self._units:
                kinds[odd & (timestamps >= first) & (timestamps <= last)] = kind
            kinds[timestamps == 0] = Kind.ZERO
            kinds[timestamps < 0] = Kind.NEGATIVE
        return kinds

    def all_plausible(self, earliest: int, latest: int) -> bool:
        """Whether all times between the two are milliseconds within ten years of now."""
        return self._plausible[0] <= earliest and latest <= self._plausible[1]
