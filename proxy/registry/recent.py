"""A cache with limits on entries and bytes. It drops the least recently used entry first."""

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class RecentCache(Generic[K, V]):
    """A cache of at most `most` entries and `most_bytes` bytes. Thread-safe.

    It stores the time with each entry.
    """

    def __init__(self, most: int, most_bytes: int | None = None) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._known: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._sizes: dict[K, int] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: K) -> tuple[float, V] | None:
        """Return an entry's time and value and mark it as used. Return None if there is none."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def learn(self, key: K, now: float, value: V, size: int = 0) -> None:
        """Store a value of `size` bytes. `now` is in monotonic seconds."""
        with self._lock:
            self._known[key] = (now, value)
            self._known.move_to_end(key)
            self._bytes += size - self._sizes.get(key, 0)
            self._sizes[key] = size
            while self._is_too_much():
                oldest, _ = self._known.popitem(last=False)
                self._bytes -= self._sizes.pop(oldest)

    def confirm(self, key: K, now: float) -> None:
        """Update an entry's time and keep its value. Do nothing if the entry was dropped."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known[key] = (now, found[1])

    def _is_too_much(self) -> bool:
        if len(self._known) > self._most:
            return True
        return self._most_bytes is not None and self._bytes > self._most_bytes and len(self._known) > 1
