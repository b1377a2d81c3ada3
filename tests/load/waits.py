"""Computes statistics of request durations: count, median, p99 and maximum."""

from collections.abc import Sequence
from statistics import median
from typing import TypedDict


class WaitDurations(TypedDict):
    """Durations in seconds, and their `count`."""

    count: int
    p50: float
    p99: float
    longest: float


def waits_of(seconds: Sequence[float]) -> WaitDurations:
    """Return the statistics; zeros without durations."""
    ordered = sorted(seconds)
    if not ordered:
        return {"count": 0, "p50": 0.0, "p99": 0.0, "longest": 0.0}
    last = len(ordered) - 1
    return {"count": len(ordered), "p50": ordered[last // 2], "p99": ordered[last * 99 // 100], "longest": ordered[-1]}


def p99_of(rounds: Sequence[WaitDurations]) -> float:
    """Return the median of the rounds' p99 (s)."""
    return median(one["p99"] for one in rounds)


def p99_text(rounds: Sequence[WaitDurations]) -> str:
    """Return the p99 as text, with the lowest and highest of several rounds."""
    all_ms = sorted(one["p99"] * 1000 for one in rounds)
    several = f" ({all_ms[0]:.2f} to {all_ms[-1]:.2f})" if len(rounds) > 1 else ""
    return f"{p99_of(rounds) * 1000:.2f} ms{several}"
