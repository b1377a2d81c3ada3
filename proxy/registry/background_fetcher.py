"""A thread that asks on behalf of others, so that who waits for an answer waits no longer than it wants."""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

MOST_WAITING = 100


class TooMany(Exception):
    """More is asked than can be looked up."""


class Errands:
    """Runs what it is given, one after the other, and each only once at a time. The thread begins with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Future[Any]] = {}
        self._queue: SimpleQueue[tuple[Hashable, Callable[[], Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, key: Hashable, errand: Callable[[], Any]) -> "Future[Any]":
        """What comes of an errand; of the one under way where there is one for the same key. Raises TooMany."""
        with self._lock:
            future = self._under_way.get(key)
            if future is not None:
                return future
            if len(self._under_way) >= MOST_WAITING:
                raise TooMany
            future = self._under_way[key] = Future()
            self._queue.put((key, errand))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            return future

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing under way."""
        return not self._under_way

    def close(self) -> None:
        """The thread ends when it has done what it was given; who asks for more begins another."""
        with self._lock:
            if self._thread is not None:
                self._queue.put(None)
                self._thread = None

    def _work(self) -> None:
        while (given := self._queue.get()) is not None:
            key, errand = given
            try:
                result, failure = errand(), None
            except BaseException as error:  # whoever waits for it is told
                result, failure = None, error
            with self._lock:
                future = self._under_way.pop(key)
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)
