"""A token bucket that may go into debt."""

MOST_OWED_SECONDS = 3600.0
"""The maximum debt in seconds. As on a broker, clients pay for overuse, but no client waits for days."""


class TokenBucket:
    """A token bucket that gains `rate` tokens a second and holds at most one second's tokens.

    Times are monotonic, in seconds.
    """

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._left = rate
        self._at = now

    def take_if_available(self, amount: float, now: float) -> bool:
        """Take `amount` tokens if they are available, and return whether they were. A failed attempt costs nothing."""
        saved = min(self._rate, self._left + max(now - self._at, 0.0) * self._rate)
        self._at = now
        is_there = saved >= amount
        self._left = saved - amount if is_there else saved
        return is_there

    def take(self, amount: float, now: float) -> float:
        """Take `amount` tokens, even if this causes debt. Return the number of seconds until there is no debt."""
        saved = min(self._rate, self._left + max(now - self._at, 0.0) * self._rate)
        self._at = now
        self._left = max(saved - amount, -MOST_OWED_SECONDS * self._rate)
        return max(0.0, -self._left / self._rate)

    def owed(self, now: float) -> float:
        """Return the number of seconds until there is no debt."""
        return max(0.0, -self._left / self._rate - max(now - self._at, 0.0))
