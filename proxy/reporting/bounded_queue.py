"""A queue from many threads to one, bounded in items and in bytes; nobody who puts something in ever waits."""

import queue
import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class BoundedQueue(Generic[T]):
    """`put` rejects what finds no room and counts it (`rejected`); one thread takes."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._queue: queue.SimpleQueue[tuple[T, int] | None] = queue.SimpleQueue()
        self._lock = threading.RLock()  # held for a few instructions; a finaliser may put something in within them
        self._put_items = self._put_bytes = 0
        self._taken_items = self._taken_bytes = 0  # written by the taking thread alone
        self._closed = False
        self.rejected = 0
        self.ended = False

    def __len__(self) -> int:
        """How many items wait."""
        return self._put_items - self._taken_items

    def put(self, item: T, size: int) -> bool:
        """Take `item` of about `size` bytes; False when there is no room, or nobody takes any more."""
        with self._lock:
            items, size_now = self._put_items - self._taken_items, self._put_bytes - self._taken_bytes
            if self._closed or items >= self._max_items or size_now + size > self._max_bytes:
                self.rejected += 1
                return False
            self._put_items += 1
            self._put_bytes += size
            self._queue.put((item, size))
            return True

    def take(self, seconds: float | None = None) -> T | None:
        """The next item; None when none came within `seconds`, or when all are taken and none will come (`ended`)."""
        try:
            entry = self._queue.get(timeout=seconds)
        except queue.Empty:
            return None
        if entry is None:
            self.ended = True
            return None
        item, size = entry
        self._taken_bytes += size
        self._taken_items += 1
        return item

    def close(self) -> None:
        """Reject everything from now on; what waits can still be taken."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
