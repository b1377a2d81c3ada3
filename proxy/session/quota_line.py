"""Sessions that wait until nothing is owed under a quota that they share, first come, first served."""

from collections import deque
from collections.abc import Callable

from sluicegate.proxy.session.outlets import Timer

# How long a session whose turn has come may take to send its request before the next one has its turn, too.
_TURN_SECONDS = 0.1

Wake = Callable[[], None]
"""Lets a session go on. Called once."""


class QuotaLine:
    """Of one share. `owed` returns seconds until nothing is owed."""

    def __init__(self, owed: Callable[[], float], call_later: Callable[[float, Wake], Timer]) -> None:
        self._owed = owed
        self._call_later = call_later
        self._waiting: deque[Wake] = deque()
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, wake: Wake) -> None:
        """Wait behind those that wait already."""
        self._waiting.append(wake)
        if self._timer is None:
            self._timer = self._call_later(self._owed(), self._next)

    def leave(self, wake: Wake) -> None:
        """Wait no longer."""
        if wake in self._waiting:
            self._waiting.remove(wake)

    def taken(self) -> None:
        """Something was taken of the share: when the next has its turn depends on what is owed now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self._call_later(self._owed(), self._next) if self._waiting else None

    def _next(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        owed = self._owed()
        self._timer = self._call_later(owed if owed > 0 else _TURN_SECONDS, self._next)
        if owed <= 0:
            self._waiting.popleft()()
