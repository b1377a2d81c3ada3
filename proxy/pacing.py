"""What has waited is gone on with for a moment at a time, so that the event loop looks at its sockets in between."""

from collections import deque
from collections.abc import Callable
from typing import Any

# So long after it looked at its sockets the loop should do so again.
LATE_SECONDS = 0.002


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
