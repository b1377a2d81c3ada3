"""Measures how much slower than usual this machine is. The limits of the short form are multiplied by this factor."""

import time
from functools import cache

_ROUNDS = 2_000_000
# The duration of the loop below on two idle cores, with Python 3.11.
_USUAL_SECONDS = 0.1
_MOST = 5.0


@cache
def slowness() -> float:
    """Return the factor: 1 on a usual or a faster machine."""
    return min(_MOST, max(1.0, min(_seconds() for _ in range(3)) / _USUAL_SECONDS))


def _seconds() -> float:
    begun = time.perf_counter()
    total = 0
    for number in range(_ROUNDS):
        total += number
    return time.perf_counter() - begun
