"""Records whether the state topic was read since the start, and lets requests about topic settings wait for that."""

import asyncio
from collections.abc import Callable

# The default timeouts of AdminClients are 30 s or more.
_WAIT_SECONDS = 10.0


class FirstRead:
    """The first complete read of the state topic. Belongs to the event loop; any thread may read `is_done`.

    Requests wait only for a few seconds after the start, because an unreadable state topic must not delay every later
    request.
    """

    def __init__(self) -> None:
        self.is_done = False
        self._waiting: list[Callable[[], None]] | None = []

    def start(self, seconds: float = _WAIT_SECONDS) -> None:
        """Let requests wait for at most `seconds` from now."""
        asyncio.get_running_loop().call_later(seconds, self._end)

    def done(self) -> None:
        """Record that the topic was read and that its settings are in force."""
        self.is_done = True
        self._end()

    def wait(self, report: Callable[[], None]) -> None:
        """Call `report` once the topic was read or the time is over, possibly immediately."""
        if self._waiting is None:
            report()
        else:
            self._waiting.append(report)

    def _end(self) -> None:
        waiting, self._waiting = self._waiting, None
        for report in waiting or ():
            report()
