"""How much slower than usual this machine is just now; the short form's allowances are multiplied by it."""

import time
from functools import cache

_ROUNDS = 2_000_000
# What the loop below takes on two cores that nobody else uses, with Python 3.11.
_USUAL_SECONDS = 0.1
_MOST = 5.0


@cache
def slowness() -> float:
    """1 on a usual machine or a faster one."""
    return min(_MOST, max(1.0, min(_seconds() for _ in range(3)) / _USUAL_SECONDS))


def _seconds() -> float:
    begun = time.perf_counter()
    total = 0
    for number in range(_ROUNDS):
        total += number
    return time.perf_counter() - begun
