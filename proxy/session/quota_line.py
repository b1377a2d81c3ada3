"""Sessions that wait until nothing is owed under a quota that they share, first come, first served."""

from collections import deque
from collections.abc import Callable

from sluicegate.proxy.session.outlets import Timer

# How long a session whose turn has come may take to send its request before the next one has its turn, too.
_TURN_SECONDS = 0.1
# Sessions that are let go on at once; the event loop does other things in between.
_WOKEN_AT_ONCE = 16

Wake = Callable[[], None]
"""Lets a session go on. Called once."""


class QuotaLine:
    """Of one share. `owed` returns seconds until nothing is owed. `requests`: how many in it have begun a request."""

    def __init__(self, owed: Callable[[], float], call_later: Callable[[float, Wake], Timer]) -> None:
        self._owed = owed
        self._call_later = call_later
        self._waiting: deque[tuple[Wake, bool]] = deque()
        self._timer: Timer | None = None
        self.requests = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, wake: Wake) -> None:
        """Wait with a request that has begun: it has a turn of its own."""
        self.requests += 1
        self._joins(wake, has_request=True)

    def join_again(self, wake: Wake) -> None:
        """Wait after what a session has paid for itself, because others owe: it may have nothing more to send."""
        self._joins(wake, has_request=False)

    def leave(self, wake: Wake) -> None:
        """Wait no longer."""
        for entry in self._waiting:
            if entry[0] is wake:
                self._waiting.remove(entry)
                self.requests -= entry[1]
                return

    def taken(self) -> None:
        """Something was taken of the share: when the next has its turn depends on what is owed now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self._call_later(self._owed(), self._next) if self._waiting else None

    def _joins(self, wake: Wake, has_request: bool) -> None:
        self._waiting.append((wake, has_request))
        if self._timer is None:
            self._timer = self._call_later(self._owed(), self._next)

    def _next(self) -> None:
        self._timer = None
        owed = self._owed()
        if owed > 0:
            self._timer = self._call_later(owed, self._next) if self._waiting else None
            return
        for _ in range(min(_WOKEN_AT_ONCE, len(self._waiting))):
            wake, has_request = self._waiting.popleft()
            if has_request:
                self.requests -= 1
                self._timer = self._call_later(_TURN_SECONDS, self._next)
                wake()
                return
            wake()
        if self._waiting:
            self._timer = self._call_later(0, self._next)
