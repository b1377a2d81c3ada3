"""What a call costs, for comparing calls with each other in one run."""

import time
from collections.abc import Callable
from contextlib import suppress

from sluicegate.protocol.errors import SenderError


def cost(call: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of CPU of this thread, the least of some tries; a rejection counts as an end like any other."""
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        with suppress(SenderError):
            call()
        best = min(best, time.thread_time() - start)
    return best
