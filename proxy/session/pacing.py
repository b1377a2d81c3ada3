"""What has waited is gone on with for a moment at a time, so that the event loop looks at its sockets in between."""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

# Twice so long after it looked at its sockets the loop should do so again.
_HALF_SECONDS = 0.0005
_MOST_STEPS = 1024


class LoopTurn:
    """How long the event loop has been busy since it looked at its sockets. An event loop tells nobody when it does
    (uvloop's `time()` asks the system's clock anew), so after a first half something is put behind all that is going on
    now: has it not run when the second half is over, it is late.
    """

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], Any],
        now: Callable[[], float],
        half_seconds: float = _HALF_SECONDS,
    ) -> None:
        """`now` in seconds, monotonic. `half_seconds`: after twice so long others have waited long enough."""
        self._half_seconds = half_seconds
        self._call_soon = call_soon
        self._now = now
        self._since = now()
        self._is_marked = False
        self._was_late = False

    def is_late(self) -> bool:
        """Whether others have waited long enough for the loop to look at them."""
        now = self._now()
        if now - self._since <= self._half_seconds:
            return False
        if self._is_marked:
            self._was_late = True
            return True
        self._is_marked = True
        self._since = now
        self._call_soon(self._looked)
        return False

    def was_late(self) -> bool:
        """Whether it has been since this was asked last."""
        was_late, self._was_late = self._was_late, False
        return was_late

    def _looked(self) -> None:
        self._is_marked = False
        self._since = self._now()


class Turn(Protocol):
    """What a Pacer has to know of a LoopTurn."""

    def is_late(self) -> bool:
        """Whether others have waited long enough."""

    def was_late(self) -> bool:
        """Whether they had to since this was asked last."""


class Pacer:
    """Runs steps in their order: one, more until it is late, and the rest after what else there is to do.

    A step that only lets somebody be read again costs its time when the loop looks at its sockets: so where that was
    late, half as many steps are run the next time, else twice as many. `call_soon` runs something after what is going
    on now.
    """

    def __init__(self, call_soon: Callable[[Callable[[], None]], Any], turn: Turn) -> None:
        self._call_soon = call_soon
        self._turn = turn
        self._most = _MOST_STEPS
        self._steps: deque[Callable[[], None]] = deque()

    def later(self, step: Callable[[], None]) -> None:
        """In its turn; never within this call."""
        self._steps.append(step)
        if len(self._steps) == 1:
            self._call_soon(self._run_some)

    def _run_some(self) -> None:
        self._most = max(1, self._most // 2) if self._turn.was_late() else min(2 * self._most, _MOST_STEPS)
        left = min(len(self._steps), self._most)  # what is added meanwhile waits for the next round
        try:
            while left > 0:
                self._steps[0]()
                self._steps.popleft()
                left -= 1
                if self._turn.is_late():
                    break
        except BaseException:
            self._steps.popleft()
            raise
        finally:
            if self._steps:
                self._call_soon(self._run_some)
