"""What the event loop says about itself; read by the admin endpoint's thread."""

import time

_STUCK_SECONDS = 10


class Health:
    """Ready: clients are served. Live: the event loop moves. `trouble` and `bad_config`: what should be mended although
    they are.
    """

    def __init__(self) -> None:
        self._last_beat = time.monotonic()
        self.not_ready: str | None = "starting"
        self.problem: str | None = None
        self.bad_config: str | None = None
        self.stuck: str | None = None

    def beat(self) -> None:
        """The event loop is alive."""
        self._last_beat = time.monotonic()

    def not_live(self) -> str | None:
        """Why the proxy is not alive; None when it is."""
        if self.stuck is not None:
            return self.stuck
        silent = time.monotonic() - self._last_beat
        return f"the event loop has not moved for {silent:.0f} s" if silent > _STUCK_SECONDS else None

    def problems(self) -> list[str]:
        """All that is to be mended, the worst first."""
        found = (self.not_live(), self.not_ready, self.problem, self.bad_config)
        return [text for text in found if text is not None]
