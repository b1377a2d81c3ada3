"""A queue from many threads to one thread, with limits on items and bytes. `put` never waits."""

import queue
import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class BoundedQueue(Generic[T]):
    """A queue that rejects items that do not fit, and counts them in `rejected`. Only one thread takes items."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._queue: queue.SimpleQueue[tuple[T, int] | None] = queue.SimpleQueue()
        self._lock = threading.RLock()  # reentrant, because a finalizer may call `put` while the lock is held
        self._put_items = self._put_bytes = 0
        self._taken_items = self._taken_bytes = 0  # only the taking thread changes these
        self._closed = False
        self.rejected = 0
        self.ended = False

    def __len__(self) -> int:
        """Return the number of waiting items."""
        return self._put_items - self._taken_items

    def put(self, item: T, size: int) -> bool:
        """Queue an item of about `size` bytes. Return False if it does not fit or the queue is closed."""
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
        """Return the next item. Return None if none arrives within `seconds`, or if the queue is closed and empty
        (`ended`).
        """
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
        """Reject new items. Waiting items can still be taken."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
