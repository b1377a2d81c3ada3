"""What was learnt lately: so much and no more, the oldest is forgotten first."""

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A mapping of at most `most` things, each with the time at which it was learnt. For several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: K) -> tuple[float, V] | None:
        """When it was learnt, and what; None where it is not known. What is asked for is kept longest."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def learn(self, key: K, now: float, value: V) -> None:
        """It is so as of `now`, seconds of a clock that only goes forward."""
        with self._lock:
            self._known[key] = (now, value)
            self._known.move_to_end(key)
            while len(self._known) > self._most:
                self._known.popitem(last=False)
