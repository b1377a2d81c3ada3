"""How long many requests took: their number, the half of them, all but a hundredth, the longest."""

from collections.abc import Sequence
from typing import TypedDict


class Waits(TypedDict):
    """In seconds, but for `count`."""

    count: int
    p50: float
    p99: float
    longest: float


def waits_of(seconds: Sequence[float]) -> Waits:
    """Zeros where there are none."""
    ordered = sorted(seconds)
    if not ordered:
        return {"count": 0, "p50": 0.0, "p99": 0.0, "longest": 0.0}
    last = len(ordered) - 1
    return {"count": len(ordered), "p50": ordered[last // 2], "p99": ordered[last * 99 // 100], "longest": ordered[-1]}
