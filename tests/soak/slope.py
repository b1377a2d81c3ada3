"""Computes the growth of a value: a straight line through samples, and its standard error."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean

_FEWEST = 3


@dataclass(frozen=True, slots=True)
class Slope:
    """The slope of a least-squares line: `per_hour`, in the unit of the values, and its standard error."""

    per_hour: float
    error: float

    @property
    def is_beyond_doubt_above(self) -> float:
        """Return the lower bound of the slope at 97.5 % confidence."""
        return self.per_hour - 2 * self.error


def slope_of(seconds: Sequence[float], values: Sequence[float]) -> Slope:
    """Return the slope of at least three samples. Raises ValueError for fewer."""
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
