"""What has waited is gone on with for a moment at a time, so that the event loop looks at its sockets in between."""

from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.outlets import LoopCalls
from sluicegate.proxy.session.pause_reason import PauseReason

# Twice so long after it looked at its sockets the loop should do so again.
_HALF_SECONDS = 0.0005
_MOST_STEPS = 1024


class LoopLateness:
    """How long the event loop has been busy since it looked at its sockets. `times_late` counts how often it was
    found to be late. An event loop tells nobody when it does
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
        self.times_late = 0

    def is_late(self) -> bool:
        """Whether others have waited long enough for the loop to look at them."""
        now = self._now()
        if now - self._since <= self._half_seconds:
            return False
        if self._is_marked:
            self.times_late += 1
            return True
        self._is_marked = True
        self._since = now
        self._call_soon(self._looked)
        return False

    def _looked(self) -> None:
        self._is_marked = False
        self._since = self._now()


class Lateness(Protocol):
    """Knows how long the event loop has been busy (`LoopLateness`)."""

    times_late: int

    def is_late(self) -> bool:
        """Return whether the loop should look at its sockets."""


class Pacer:
    """Runs steps: one, more until it is late, and the rest after what else there is to do. Those of one address run in
    their order, and addresses take turns, so that nobody waits for all that thousands from elsewhere want.

    A step that only lets somebody be read again costs its time when the loop looks at its sockets: so where that was
    late, half as many steps are run the next time, else twice as many, up to `most_steps`. `call_soon` runs something
    after what is going on now.
    """

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], Any], lateness: Lateness, most_steps: int = _MOST_STEPS
    ) -> None:
        self._call_soon = call_soon
        self._lateness = lateness
        self._most_steps = self._most = most_steps
        self._times_late = lateness.times_late
        self._lines: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()
        self._waiting = 0

    def later(self, step: Callable[[], None], address: str = "") -> None:
        """In the turn of `address`; never within this call."""
        self._lines.setdefault(address, deque()).append(step)
        self._waiting += 1
        if self._waiting == 1:
            self._call_soon(self._run_some)

    def _run_some(self) -> None:
        was_late = self._lateness.times_late != self._times_late
        self._times_late = self._lateness.times_late
        self._most = max(1, self._most // 2) if was_late else min(2 * self._most, self._most_steps)
        left = min(self._waiting, self._most)  # what is added meanwhile waits for the next round
        try:
            while left > 0:
                self._run_next()
                left -= 1
                if self._lateness.is_late():
                    break
        finally:
            if self._waiting:
                self._call_soon(self._run_some)

    def _run_next(self) -> None:
        address, line = next(iter(self._lines.items()))
        try:
            line[0]()
        finally:
            line.popleft()
            self._waiting -= 1
            self._lines.move_to_end(address)
            if not line:
                del self._lines[address]


class SessionTurns:
    """Makes one session, whose client has the address by which it takes turns, wait for others."""

    def __init__(self, lateness: Lateness, loop: LoopCalls, client: Connection) -> None:
        self._lateness = lateness
        self._loop = loop
        self._client = client

    def is_late(self) -> bool:
        """Return whether the event loop should look at its sockets."""
        return self._lateness.is_late()

    def end(self, connection: Connection) -> None:
        """Pause a connection until others had their turn."""
        connection.pause(PauseReason.TURN_OVER)
        self._loop.later(partial(connection.resume_now, PauseReason.TURN_OVER), self._client.address)
