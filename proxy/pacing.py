"""What has waited is gone on with for a moment at a time, so that the event loop looks at its sockets in between."""

from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any

# Twice so long after it looked at its sockets the loop should do so again.
_HALF_SECONDS = 0.0005


class LoopTurn:
    """How long the event loop has been busy since it looked at its sockets. An event loop tells nobody when it does
    (uvloop's `time()` asks the system's clock anew), so after a first half something is put behind all that is going on
    now: has it not run when the second half is over, it is late.
    """

    def __init__(self, call_soon: Callable[[Callable[[], None]], Any], now: Callable[[], float] = monotonic) -> None:
        """`now` in seconds, monotonic."""
        self._call_soon = call_soon
        self._now = now
        self._since = now()
        self._is_marked = False

    def is_late(self) -> bool:
        """Whether others have waited long enough for the loop to look at them."""
        now = self._now()
        if now - self._since <= _HALF_SECONDS:
            return False
        if self._is_marked:
            return True
        self._is_marked = True
        self._since = now
        self._call_soon(self._looked)
        return False

    def _looked(self) -> None:
        self._is_marked = False
        self._since = self._now()


class Pacer:
    """Runs steps in their order: one, more until it `is_late`, and the rest after what else there is to do.

    `call_soon` runs something after what is going on now.
    """

    def __init__(self, call_soon: Callable[[Callable[[], None]], Any], is_late: Callable[[], bool]) -> None:
        self._call_soon = call_soon
        self._is_late = is_late
        self._steps: deque[Callable[[], None]] = deque()

    def later(self, step: Callable[[], None]) -> None:
        """In its turn; never within this call."""
        if not self._steps:
            self._call_soon(self._run_some)
        self._steps.append(step)

    def _run_some(self) -> None:
        left = len(self._steps)  # what is added meanwhile waits for the next round
        try:
            while left > 0:
                self._steps[0]()
                self._steps.popleft()
                left -= 1
                if self._is_late():
                    break
        except BaseException:
            self._steps.popleft()
            raise
        finally:
            if self._steps:
                self._call_soon(self._run_some)
