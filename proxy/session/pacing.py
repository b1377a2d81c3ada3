"""Divides deferred work into short steps, so that the event loop serves its sockets between them."""

from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.outlets import LoopCalls
from sluicegate.proxy.session.pause_reason import PauseReason

# The event loop should poll its sockets at least every two of these intervals.
_HALF_SECONDS = 0.0005
_MOST_STEPS = 1024


class LoopLateness:
    """Measures how long the event loop has not polled its sockets. `times_late` counts the checks that found it late.

    An event loop does not report its polls (uvloop's `time()` reads the system clock). So a callback is scheduled after
    the first half of the time. If it has not run after the second half, the loop is late.
    """

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], Any],
        now: Callable[[], float],
        half_seconds: float = _HALF_SECONDS,
    ) -> None:
        """`now` is monotonic, in seconds. The loop is late after twice `half_seconds`."""
        self._half_seconds = half_seconds
        self._call_soon = call_soon
        self._now = now
        self._since = now()
        self._is_marked = False
        self.times_late = 0

    def check_lateness(self) -> bool:
        """Return whether the loop is late and should poll its sockets. Count the late checks."""
        now = self._now()
        if now - self._since <= self._half_seconds:
            return False
        if self._is_marked:
            self.times_late += 1
            return True
        self._is_marked = True
        self._since = now
        self._call_soon(self._on_poll)
        return False

    def _on_poll(self) -> None:
        self._is_marked = False
        self._since = self._now()


class ReportsLateness(Protocol):
    """Reports how long the event loop has been busy (`LoopLateness`)."""

    times_late: int

    def check_lateness(self) -> bool:
        """Return whether the loop is late and should poll its sockets. Count the late checks."""


class Pacer:
    """Runs deferred steps.

    Each loop iteration runs at least one step, and then more until the loop is late. The remaining steps run in later
    iterations. Steps for one address run in order, and addresses take turns.

    When a step resumes a connection, most of its cost arises when the loop polls its sockets. So after a late poll the
    next round has half as many steps, and otherwise twice as many, up to `most_steps`.
    """

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], Any], lateness: ReportsLateness, most_steps: int = _MOST_STEPS
    ) -> None:
        self._call_soon = call_soon
        self._lateness = lateness
        self._most_steps = self._most = most_steps
        self._times_late = lateness.times_late
        self._lines: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()
        self._waiting = 0

    def later(self, step: Callable[[], None], address: str = "") -> None:
        """Schedule a step in the turn of `address`. The step never runs within this call."""
        self._lines.setdefault(address, deque()).append(step)
        self._waiting += 1
        if self._waiting == 1:
            self._call_soon(self._run_some)

    def _run_some(self) -> None:
        was_late = self._lateness.times_late != self._times_late
        self._times_late = self._lateness.times_late
        self._most = max(1, self._most // 2) if was_late else min(2 * self._most, self._most_steps)
        left = min(self._waiting, self._most)  # steps that are added meanwhile wait for the next round
        try:
            while left > 0:
                self._run_next()
                left -= 1
                if self._lateness.check_lateness():
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
    """Makes one session wait for others. Sessions take turns by client address."""

    def __init__(self, lateness: ReportsLateness, loop: LoopCalls, client: Connection) -> None:
        self._lateness = lateness
        self._loop = loop
        self._client = client

    def check_lateness(self) -> bool:
        """Return whether the loop is late and should poll its sockets. Count the late checks."""
        return self._lateness.check_lateness()

    def pause_for_others(self, connection: Connection) -> None:
        """Pause a connection until the other connections have had their turn."""
        connection.pause(PauseReason.FAIR_SHARE)
        self._loop.later(partial(connection.resume_now, PauseReason.FAIR_SHARE), self._client.address)
