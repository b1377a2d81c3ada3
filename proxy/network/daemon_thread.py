"""Awaits blocking work in daemon threads. Unlike an executor's threads, they do not delay the end of the process."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")


async def in_daemon_thread(work: Callable[[], _T]) -> _T:
    """Return the result of `work`, or raise its exception. If the caller is cancelled, the thread still finishes."""
    future: Future[_T] = Future()
    context = contextvars.copy_context()  # so that log lines name the worker
    threading.Thread(target=context.run, args=(_do, future, work), name="off the loop", daemon=True).start()
    return await asyncio.wrap_future(future)


class DaemonThread:
    """One thread that runs jobs in order. It skips a job whose caller was cancelled before the job started."""

    def __init__(self, name: str) -> None:
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._is_started = False

    async def do(self, work: Callable[[], _T]) -> _T:
        """Return the result of `work`, or raise its exception. All calls must come from one event loop."""
        if not self._is_started:
            self._is_started = True
            self._thread.start()
        future: Future[_T] = Future()
        self._waiting.put((future, work))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Let the thread end after the queued jobs, without waiting for it."""
        self._waiting.put(None)

    def _run(self) -> None:
        while (job := self._waiting.get()) is not None:
            _do(*job)
            del job  # this frees the job's result


def _do(future: "Future[_T]", work: Callable[[], _T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:  # the caller raises it again
        future.set_exception(error)
    finally:
        del future  # breaks the reference cycle of the future and its error's traceback
