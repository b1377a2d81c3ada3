"""What may be taken in a second, counted so that what was taken beyond it is owed."""

MOST_OWED_SECONDS = 3600.0
"""More is not owed: as at a broker, what was taken is paid for, but no client waits for days."""


class TokenBucket:
    """`rate` a second, of which up to one second's may be saved. Knows no clock: times are in seconds, monotonic."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._left = rate
        self._at = now

    def take_if_there(self, amount: float, now: float) -> bool:
        """Take it where so much is left; whether it was. Who may not take it owes nothing for having asked."""
        saved = min(self._rate, self._left + max(now - self._at, 0.0) * self._rate)
        self._at = now
        is_there = saved >= amount
        self._left = saved - amount if is_there else saved
        return is_there

    def take(self, amount: float, now: float) -> float:
        """Take it, whatever is left; returns how long, in seconds, until nothing is owed."""
        saved = min(self._rate, self._left + max(now - self._at, 0.0) * self._rate)
        self._at = now
        self._left = max(saved - amount, -MOST_OWED_SECONDS * self._rate)
        return max(0.0, -self._left / self._rate)

    def owed(self, now: float) -> float:
        """Return how long, in seconds, until nothing is owed."""
        return max(0.0, -self._left / self._rate - max(now - self._at, 0.0))
