"""Classic Prometheus histograms of durations, as plain integers."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets, in seconds; the last bucket is unbounded."""


class Durations:
    """A histogram. `seconds` is the sum of the durations."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float, stands_for: int = 1) -> None:
        """Count a duration that represents `stands_for` requests."""
        self.counts[bisect_left(BOUNDS, seconds)] += stands_for
        self.seconds += seconds * stands_for

    def __add__(self, other: "Durations") -> "Durations":
        total = Durations()
        total.counts = [one + another for one, another in zip(self.counts, other.counts, strict=True)]
        total.seconds = self.seconds + other.seconds
        return total

    def copied(self) -> "Durations":
        """Return a copy. Thread-safe."""
        return self + Durations()

    def cumulative(self) -> Iterator[tuple[str, float]]:
        """Return (upper bound, cumulative count) pairs in Prometheus's format."""
        bounds = [*(repr(bound) for bound in BOUNDS), "+Inf"]
        return zip(bounds, accumulate(self.counts), strict=True)


class DurationsBy(dict[str, Durations]):
    """Histograms by a label value."""

    def add(self, key: str, seconds: float, stands_for: int = 1) -> None:
        """Count a duration with this label value."""
        found = self.get(key)
        if found is None:
            found = self[key] = Durations()
        found.add(seconds, stands_for)

    def __add__(self, other: "DurationsBy") -> "DurationsBy":
        total = self.copied()
        for key, durations in list(other.items()):
            total[key] = total.get(key, Durations()) + durations
        return total

    def copied(self) -> "DurationsBy":
        """Return a copy. Thread-safe."""
        return DurationsBy({key: durations.copied() for key, durations in list(self.items())})
