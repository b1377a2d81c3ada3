"""A thread that makes requests for other threads, so that each caller can limit its wait for a result."""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

MOST_WAITING = 100


class TooManyFetches(Exception):
    """Too many fetches are waiting."""


class BackgroundFetcher:
    """Runs fetches in order.

    Each key has at most one pending fetch. The thread starts with the first fetch.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Future[Any]] = {}
        self._queue: SimpleQueue[tuple[Hashable, Callable[[], Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, key: Hashable, fetch: Callable[[], Any]) -> "Future[Any]":
        """Start a fetch and return its future. If a fetch with the same key is pending, return that fetch's future.

        Raises TooManyFetches.
        """
        with self._lock:
            future = self._under_way.get(key)
            if future is not None:
                return future
            if len(self._under_way) >= MOST_WAITING:
                raise TooManyFetches
            future = self._under_way[key] = Future()
            self._queue.put((key, fetch))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            return future

    @property
    def is_idle(self) -> bool:
        """Whether no fetch is pending."""
        return not self._under_way

    def close(self) -> None:
        """End the thread after the pending fetches. A later fetch starts another thread."""
        with self._lock:
            if self._thread is not None:
                self._queue.put(None)
                self._thread = None

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            self._make(*job)
            del job  # the job may refer to data that a request has read

    def _make(self, key: Hashable, fetch: Callable[[], Any]) -> None:
        try:
            result = fetch()
        except BaseException as error:  # the caller raises it again
            self._ended(key).set_exception(error)
        else:
            self._ended(key).set_result(result)

    def _ended(self, key: Hashable) -> "Future[Any]":
        with self._lock:
            return self._under_way.pop(key)
