"""Measures the cost of a call, for comparisons within one run."""

import time
from collections.abc import Callable
from contextlib import suppress

from sluicegate.protocol.errors import SenderError


def cpu_seconds_of_call(call: Callable[[], object], repeats: int = 5) -> float:
    """Return the CPU time of a call in this thread (s), the minimum of several runs; a rejection is a normal end."""
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        with suppress(SenderError):
            call()
        best = min(best, time.thread_time() - start)
    return best
