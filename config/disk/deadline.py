"""Runs what reads files in daemon threads with a deadline, so that a file system that hangs stops nothing else.

A thread that hangs in the kernel cannot be ended. It is left alone, and does not keep the process from ending. While it
hangs, the same work is not begun again: callers get an error at once, until it comes back.
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
    """A file is not a regular one, or its file system does not respond; `strerror` is the reason."""


class _Attempt(threading.Thread):
    """Work in progress. `file`: the file that it reads now."""

    def __init__(self, key: Hashable, work: Callable[[], Any]) -> None:
        context = contextvars.copy_context()  # log lines name the worker
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
            del self  # otherwise its future and the traceback of the error keep each other

    def _forget(self) -> None:
        with _lock:
            _attempts.pop(self._key, None)


_lock = threading.Lock()
_attempts: dict[Hashable, _Attempt] = {}


def within_deadline(key: Hashable, work: Callable[[], _T], seconds: float = DEADLINE_SECONDS) -> _T:
    """Return what `work` returns, or raise what it raises; blocks for at most `seconds`.

    Callers with the same `key` share the result of work in progress. Raises FileUnreadable
    after the deadline; its `filename` is the file that the work reads.
    """
    attempt = _attempt(key, work)
    try:
        result: _T = attempt.future.result(max(attempt.began_at + seconds - time.monotonic(), 0))
    except TimeoutError as error:
        if attempt.future.done():  # it is the work's own, or has come this moment
            late: _T = attempt.future.result()
            return late
        reason = f"its file system has not responded within {seconds:g} s"
        raise FileUnreadable(errno.ETIMEDOUT, reason, attempt.file) from error
    finally:
        del attempt  # otherwise its future and the traceback of the error keep each other
    return result


def note_file(path: Path) -> None:
    """Note which file the work of this thread is at, for a message."""
    thread = threading.current_thread()
    if isinstance(thread, _Attempt):
        thread.file = str(path)


def _attempt(key: Hashable, work: Callable[[], Any]) -> _Attempt:
    with _lock:
        if key in _attempts:
            return _attempts[key]
        if len(_attempts) >= MOST_HANGING:
            raise FileUnreadable(errno.EAGAIN, f"{MOST_HANGING} other reads are under way: does a file system hang?")
        attempt = _attempts[key] = _Attempt(key, work)
    try:
        attempt.start()
    except RuntimeError as error:
        with _lock:
            _attempts.pop(key, None)
        raise FileUnreadable(errno.EAGAIN, f"no thread can be started to read it: {error}") from error
    return attempt
