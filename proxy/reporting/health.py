"""The health of a process: whether it serves clients, whether its event loop runs, and its problems."""

import time

SERVING, NEEDS_ATTENTION, NOT_SERVING = "serving", "needs attention", "not serving"
_STUCK_SECONDS = 10


class Health:
    """Written on the event loop, read by the admin endpoint's thread.

    `not_ready`: why clients are not served, None if they are. `problem`, `bad_config`: problems that need attention
    although clients are served. `stuck`: a worker that does not respond.
    """

    def __init__(self) -> None:
        self._last_beat = time.monotonic()
        self.not_ready: str | None = "starting"
        self.problem: str | None = None
        self.bad_config: str | None = None
        self.stuck: str | None = None

    def beat(self) -> None:
        """Note that the event loop runs."""
        self._last_beat = time.monotonic()

    def not_live(self) -> str | None:
        """Return why the process is not alive, None if it is."""
        if self.stuck is not None:
            return self.stuck
        silent = time.monotonic() - self._last_beat
        return f"the event loop has not run for {silent:.0f} s" if silent > _STUCK_SECONDS else None

    def problems(self) -> list[str]:
        """Return all problems, the worst first."""
        found = (self.not_live(), self.not_ready, self.problem, self.bad_config)
        return [text for text in found if text is not None]

    def state(self) -> str:
        """Return `serving`, `needs attention` or `not serving`."""
        if self.not_ready is not None or self.not_live() is not None:
            return NOT_SERVING
        return NEEDS_ATTENTION if self.problems() else SERVING
