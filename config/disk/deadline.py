"""Reads files in daemon threads with a deadline, so that a hanging file system blocks nothing else.

A thread that hangs in the kernel cannot be terminated. The proxy abandons it, and the process can exit without it.
While it hangs, the same work is not started again, and callers get an error at once.
"""

import contextvars
import errno
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

_T = TypeVar("_T")

DEADLINE_SECONDS = 5.0
MOST_HANGING = 16


class FileUnreadable(OSError):
    """Raised if a file is not a regular file, or if its file system does not respond. `strerror` is the reason."""


class _Attempt(threading.Thread):
    """Work in progress. `file` is the file that the work is reading."""

    def __init__(self, key: Hashable, work: Callable[[], Any]) -> None:
        context = contextvars.copy_context()  # gives log lines the worker's index
        super().__init__(name="file", target=context.run, args=(self._work,), daemon=True)
        self.file: str | None = None
        self.began_at = time.monotonic()
        self.future: Future[Any] = Future()
        self._key = key
        self._do = work

    def _work(self) -> None:
        try:
            result = self._do()
        except BaseException as error:
            self._forget()
            self.future.set_exception(error)
        else:
            self._forget()
            self.future.set_result(result)
        finally:
            del self  # otherwise the future and the traceback of its error keep each other alive

    def _forget(self) -> None:
        with _lock:
            _attempts.pop(self._key, None)


_lock = threading.Lock()
_attempts: dict[Hashable, _Attempt] = {}


def within_deadline(key: Hashable, work: Callable[[], _T], seconds: float = DEADLINE_SECONDS) -> _T:
    """Return the result of `work`, or raise its exception.

    Blocks for at most `seconds`. Callers with the same `key` share the result of work in progress. After the deadline,
    raises FileUnreadable; its `filename` is the file that the work is reading.
    """
    attempt = _attempt(key, work)
    try:
        result: _T = attempt.future.result(max(attempt.began_at + seconds - time.monotonic(), 0))
    except TimeoutError as error:
        if attempt.future.done():  # the work itself raised the error, or has just finished
            late: _T = attempt.future.result()
            return late
        reason = f"its file system has not responded within {seconds:g} s"
        raise FileUnreadable(errno.ETIMEDOUT, reason, attempt.file) from error
    finally:
        del attempt  # otherwise the future and the traceback of its error keep each other alive
    return result


def note_file(path: Path) -> None:
    """Record the file that this thread's work is reading, for error messages."""
    thread = threading.current_thread()
    if isinstance(thread, _Attempt):
        thread.file = str(path)


def _attempt(key: Hashable, work: Callable[[], Any]) -> _Attempt:
    with _lock:
        if key in _attempts:
            return _attempts[key]
        if len(_attempts) >= MOST_HANGING:
            raise FileUnreadable(errno.EAGAIN, f"{MOST_HANGING} other reads have not finished: a file system may hang")
        attempt = _attempts[key] = _Attempt(key, work)
    try:
        attempt.start()
    except RuntimeError as error:
        with _lock:
            _attempts.pop(key, None)
        raise FileUnreadable(errno.EAGAIN, f"no thread can be started for reading: {error}") from error
    return attempt
