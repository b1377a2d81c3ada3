"""The bound on what all connections together may gather: a frame's bytes are reserved before it is read."""

from collections import deque
from collections.abc import Callable


class GatherBudget:
    """Bytes for gathered frames, handed out first come, first served.

    A reservation is for a whole frame at once, so two half-read frames can never wait for each other.
    """

    def __init__(self, total_bytes: int) -> None:
        self._free = total_bytes
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    def take(self, size: int, when_free: Callable[[], None]) -> bool:
        """Reserve `size` bytes now (True), or later: `when_free` is called once they are reserved (False)."""
        if not self._waiting and size <= self._free:
            self._free -= size
            return True
        self._waiting.append((size, when_free))
        return False

    def forget(self, when_free: Callable[[], None]) -> None:
        """A waiter has gone."""
        self._waiting = deque(entry for entry in self._waiting if entry[1] != when_free)

    def give_back(self, size: int) -> None:
        """Return a reservation; whoever waits longest goes first."""
        self._free += size
        while self._waiting and self._waiting[0][0] <= self._free:
            wanted, when_free = self._waiting.popleft()
            self._free -= wanted
            when_free()
