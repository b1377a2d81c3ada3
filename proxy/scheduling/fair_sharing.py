"""Shares work and slots fairly among clients.

The classes use no thread, lock or clock. Callers pass monotonic times in seconds.
"""

import math
from collections import Counter
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

# The half-life of an account's work: after this time, the work counts half as much.
_HALF_LIFE_SECONDS = 5.0
# An account without any work yet is queued as if this much work had been done for it. Opening new accounts costs a
# client nothing, so they must not precede a client that needs only little work.
_NEWCOMER_SECONDS = 0.5


class Account:
    """The work done for one connection, in seconds that decay over time.

    `has_left` is true if its client no longer waits. `is_new` is true until work has been done for it. `last_seconds`
    is the time that its last work took.
    """

    def __init__(self) -> None:
        self._served = 0.0
        self._at = 0.0
        self.has_left = False
        self.is_new = True
        self.last_seconds = 0.0

    def served(self, now: float) -> float:
        """Return the decayed work in seconds."""
        return self._served * math.exp2((self._at - now) / _HALF_LIFE_SECONDS)

    def add(self, seconds: float, now: float) -> None:
        """Add work that has just been done."""
        self._served = self.served(now) + seconds
        self._at = now
        self.is_new = False
        self.last_seconds = seconds


class WaitingWork(Protocol):
    """Work that waits, with the account for which it is done."""

    account: Account


T = TypeVar("T", bound=WaitingWork)


class FairQueue(Generic[T]):
    """A queue that serves the account with the least recent work first, and each account's oldest work first.

    Among accounts without any work yet, the latest is served first, so that a new client does not wait for all clients
    that arrived before it.
    """

    def __init__(self) -> None:
        self._waiting: list[T] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, work: T) -> None:
        """Append work."""
        self._waiting.append(work)

    def remove(self, work: T) -> bool:
        """Remove work, and return whether it was still waiting."""
        if work not in self._waiting:
            return False
        self._waiting.remove(work)
        return True

    def clear(self) -> None:
        """Remove all work."""
        self._waiting.clear()

    def pop(self, now: float) -> T | None:
        """Remove and return the next item of work, or return None if the queue is empty."""
        if not self._waiting:
            return None
        return self._waiting.pop(self._first(now))

    def pop_unless_heavier(self, account: Account, seconds: float, now: float) -> T | None:
        """Remove and return the next item of work.

        Return None if the queue is empty, or if the next account has received at least `seconds` more work than
        `account`.
        """
        if not self._waiting:
            return None
        first = self._first(now)
        if self._waiting[first].account.served(now) - account.served(now) > seconds:
            return None
        return self._waiting.pop(first)

    def _first(self, now: float) -> int:
        waiting = self._waiting
        first = min(range(len(waiting)), key=lambda place: _order(waiting[place].account, now))
        account = waiting[first].account
        if not account.is_new:
            return first
        latest = next(
            work.account
            for work in reversed(waiting)
            if work.account.is_new and work.account.has_left is account.has_left
        )
        return next(place for place, work in enumerate(waiting) if work.account is latest)


def _order(account: Account, now: float) -> tuple[bool, float]:
    return account.has_left, _NEWCOMER_SECONDS if account.is_new else account.served(now)


class FairSlots:
    """`total` slots for many users.

    No user may take more slots than it leaves free, so a new user always finds one. A single user gets half of the
    slots, two users get a third each, and so on. The number of future users need not be known.
    """

    def __init__(self, total: int) -> None:
        self._free = total
        self._taken: Counter[Hashable] = Counter()

    def taken_by(self, user: Hashable) -> int:
        """Return how many slots `user` has taken."""
        return self._taken[user]

    def has_slot_for(self, user: Hashable) -> bool:
        """Return whether `user` may take another slot."""
        return self._taken[user] < self._free

    def take(self, user: Hashable) -> None:
        """Take a slot for `user`."""
        self._free -= 1
        self._taken[user] += 1

    def release(self, user: Hashable) -> None:
        """Free one of the slots of `user`."""
        self._free += 1
        self._taken[user] -= 1
        if not self._taken[user]:
            del self._taken[user]
