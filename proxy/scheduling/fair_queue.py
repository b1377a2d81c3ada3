"""Whose work is next where there is more than can be done at once: theirs for whom least was done lately.

No thread, lock or clock: times are handed in, in seconds (monotonic).
"""

import math
from typing import Generic, Protocol, TypeVar

# What was done for somebody counts half after this long.
_HALF_LIFE_SECONDS = 5.0


class Account:
    """How much work was done for one connection, in seconds that fade. `has_left`: its client waits no more."""

    def __init__(self) -> None:
        self._served = 0.0
        self._at = 0.0
        self.has_left = False

    def served(self, now: float) -> float:
        """Seconds of work, the older the less."""
        return self._served * math.exp2((self._at - now) / _HALF_LIFE_SECONDS)

    def add(self, seconds: float, now: float) -> None:
        """Something was done for it just now."""
        self._served = self.served(now) + seconds
        self._at = now


class Waiting(Protocol):
    """Something to be done for somebody."""

    account: Account


T = TypeVar("T", bound=Waiting)


class Turns(Generic[T]):
    """What waits to be done."""

    def __init__(self) -> None:
        self._waiting: list[T] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, work: T) -> None:
        """The newest."""
        self._waiting.append(work)

    def remove(self, work: T) -> bool:
        """Whether it was still waiting; it no longer is."""
        if work not in self._waiting:
            return False
        self._waiting.remove(work)
        return True

    def clear(self) -> None:
        """Nothing waits any more."""
        self._waiting.clear()

    def pop(self, now: float) -> T | None:
        """The next: for whom least was done, and of those who waits longest."""
        if not self._waiting:
            return None
        return self._waiting.pop(self._first(now))

    def pop_before(self, account: Account, now: float) -> T | None:
        """The next if it goes before more work for `account`, else None."""
        if not self._waiting:
            return None
        first = self._first(now)
        if _order(self._waiting[first].account, now) >= _order(account, now):
            return None
        return self._waiting.pop(first)

    def pop_unless_heavier(self, account: Account, seconds: float, now: float) -> T | None:
        """The next, unless more was done for it than for `account`, by as many seconds; None: nothing, or that."""
        if not self._waiting:
            return None
        first = self._first(now)
        if self._waiting[first].account.served(now) - account.served(now) > seconds:
            return None
        return self._waiting.pop(first)

    def _first(self, now: float) -> int:
        return min(range(len(self._waiting)), key=lambda place: _order(self._waiting[place].account, now))


def _order(account: Account, now: float) -> tuple[bool, float]:
    return account.has_left, account.served(now)
