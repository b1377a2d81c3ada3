"""How fast something grows: a straight line through samples, and how far it may be from the truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean

_FEWEST = 3


@dataclass(frozen=True, slots=True)
class Slope:
    """Of a line by least squares: `per_hour`, in the unit of the values, and its standard error."""

    per_hour: float
    error: float

    @property
    def is_beyond_doubt_above(self) -> float:
        """What it is at least, but for one time in forty."""
        return self.per_hour - 2 * self.error


def slope_of(seconds: Sequence[float], values: Sequence[float]) -> Slope:
    """Of at least three samples. Raises ValueError for fewer."""
    if len(seconds) < _FEWEST:
        raise ValueError(f"{len(seconds)} samples have no slope with an error")
    hours = [each / 3600 for each in seconds]
    middle, mean = fmean(hours), fmean(values)
    spread = sum((hour - middle) ** 2 for hour in hours)
    if spread == 0:
        return Slope(0.0, inf)
    slope = sum((hour - middle) * (value - mean) for hour, value in zip(hours, values, strict=True)) / spread
    beside = sum((value - mean - slope * (hour - middle)) ** 2 for hour, value in zip(hours, values, strict=True))
    return Slope(slope, sqrt(beside / (len(hours) - 2) / spread))
