"""A token bucket that may go into debt."""

MOST_OWED_SECONDS = 3600.0
"""The limit of the debt: as with a broker, clients pay for overuse, but none waits for days."""


class TokenBucket:
    """Gains `rate` tokens a second and keeps those of one second at most. Times are in seconds, monotonic."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._left = rate
        self._at = now

    def take_if_available(self, amount: float, now: float) -> bool:
        """Take `amount` if it is available, and return whether it was. A failed attempt costs nothing."""
        saved = min(self._rate, self._left + max(now - self._at, 0.0) * self._rate)
        self._at = now
        is_there = saved >= amount
        self._left = saved - amount if is_there else saved
        return is_there

    def take(self, amount: float, now: float) -> float:
        """Take `amount`, if necessary on credit; return the seconds until there is no debt."""
        saved = min(self._rate, self._left + max(now - self._at, 0.0) * self._rate)
        self._at = now
        self._left = max(saved - amount, -MOST_OWED_SECONDS * self._rate)
        return max(0.0, -self._left / self._rate)

    def owed(self, now: float) -> float:
        """Return the seconds until there is no debt."""
        return max(0.0, -self._left / self._rate - max(now - self._at, 0.0))
