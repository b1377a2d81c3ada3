"""How long things took, counted by how long: what Prometheus calls a classic histogram, without Prometheus."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of what is counted together, in seconds; above the last there is no bound."""


class Durations:
    """Of one kind. `seconds` is their sum."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float, stands_for: int = 1) -> None:
        """One more that took so long, and stands for so many."""
        self.counts[bisect_left(BOUNDS, seconds)] += stands_for
        self.seconds += seconds * stands_for

    def __add__(self, other: "Durations") -> "Durations":
        total = Durations()
        total.counts = [one + another for one, another in zip(self.counts, other.counts, strict=True)]
        total.seconds = self.seconds + other.seconds
        return total

    def copied(self) -> "Durations":
        """As they are at one moment; may be asked from another thread."""
        return self + Durations()

    def cumulative(self) -> Iterator[tuple[str, float]]:
        """(upper bound, how many took at most so long), as Prometheus writes them."""
        bounds = [*(repr(bound) for bound in BOUNDS), "+Inf"]
        return zip(bounds, accumulate(self.counts), strict=True)


class DurationsBy(dict[str, Durations]):
    """By what they are told apart by."""

    def add(self, key: str, seconds: float, stands_for: int = 1) -> None:
        """One more of that key."""
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
        """As they are at one moment; may be asked from another thread."""
        return DurationsBy({key: durations.copied() for key, durations in list(self.items())})
