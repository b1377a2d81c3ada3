"""At most so many a second, and how many there were besides."""


class PerSecond:
    """The time is handed in, in seconds that only go forward."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._since = float("-inf")
        self._taken = 0
        self._passed = 0

    def take(self, now: float) -> int | None:
        """How many were passed over since the last that was taken; None: this one is passed over too."""
        if now - self._since >= 1:
            self._since, self._taken = now, 0
        if self._taken >= self._most:
            self._passed += 1
            return None
        self._taken += 1
        passed, self._passed = self._passed, 0
        return passed
