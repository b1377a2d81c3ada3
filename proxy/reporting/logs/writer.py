"""Log lines are written by a thread of their own, so that a full disk or a pipe that nobody reads keeps nobody waiting.

What finds no room in the queue, or cannot be written, is counted; one line says how many as soon as writing works
again.
"""

import contextvars
import fcntl
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from sluicegate.proxy.reporting.bounded_queue import BoundedQueue
from sluicegate.proxy.reporting.whole_lines import NotWhole, append_lines, is_regular, locked
from sluicegate.proxy.scheduling.switch_interval import ShortTurns

MAX_LINES = 10_000
MAX_BYTES = 8 << 20
_TELL_AGAIN_SECONDS = 1.0
_OF_A_LINE = 500  # what a line holds besides its texts, about
Line = dict[str, Any]


class LogWriter:
    """Writes what `render` makes of each line to `fd`; `lost` makes the line that says how many were not written."""

    def __init__(
        self, fd: int, render: Callable[[Line], bytes], lost: Callable[[int], Line], max_lines: int = MAX_LINES
    ) -> None:
        self._fd = fd
        self._render = render
        self._lost = lost
        self._queue: BoundedQueue[Line] = BoundedQueue(max_lines, MAX_BYTES)
        self._failed = 0
        self._told = 0
        self._torn = False
        self._turns = ShortTurns()
        context = contextvars.copy_context()  # a thread has none of its own: which worker this is stands there
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="log", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Lines that were not written and never will be."""
        return self._queue.rejected + self._failed

    def put(self, line: Line) -> None:
        """Queue a line; never waits."""
        self._queue.put(line, _OF_A_LINE + sum(sys.getsizeof(value) for value in line.values()))

    def close(self, seconds: float) -> None:
        """Write what is queued, for at most `seconds`; what is left then is lost."""
        self._queue.close()
        self._thread.join(seconds)

    def _run(self) -> None:
        told_at = float("-inf")
        while not self._queue.ended:
            line = self._queue.take(_TELL_AGAIN_SECONDS if self.dropped > self._told else None)
            now = time.monotonic()
            if self.dropped > self._told and (line is None or now - told_at >= _TELL_AGAIN_SECONDS):
                told_at = now
                self._tell_what_is_lost()
            if line is not None:
                self._failed += not self._written(line)
            self._turns.give_way()

    def _tell_what_is_lost(self) -> None:
        dropped = self.dropped
        if self._written(self._lost(dropped - self._told)):
            self._told = dropped

    def _written(self, line: Line) -> bool:
        try:
            data = self._render(line)
            with locked(self._fd, fcntl.lockf) if is_regular(self._fd) else nullcontext():
                append_lines(self._fd, b"\n" + data if self._torn else data)
            self._torn = False
        except NotWhole as error:
            self._torn |= error.torn
            return False
        except Exception:  # nothing that a line holds, and nothing a disk does, may end this thread
            return False
        return True
