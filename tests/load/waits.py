"""How long many requests took: their number, the half of them, all but a hundredth, the longest."""

from collections.abc import Sequence
from statistics import median
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


def p99_of(rounds: Sequence[Waits]) -> float:
    """The median of the rounds' (s)."""
    return median(one["p99"] for one in rounds)


def p99_said(rounds: Sequence[Waits]) -> str:
    """With the lowest and the highest, where there are several rounds."""
    all_ms = sorted(one["p99"] * 1000 for one in rounds)
    several = f" ({all_ms[0]:.2f} to {all_ms[-1]:.2f})" if len(rounds) > 1 else ""
    return f"{p99_of(rounds) * 1000:.2f} ms{several}"
