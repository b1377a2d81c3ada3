"""Writes log lines in a separate thread, so that a full disk or an unread pipe does not block the proxy.

Lines that do not fit into the queue or cannot be written are counted. When writing works again, one line reports the
count.
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
from sluicegate.proxy.reporting.whole_lines import PartialWrite, append_lines, file_lock, is_regular
from sluicegate.proxy.scheduling.short_turns import ShortTurns

MAX_LINES = 10_000
MAX_BYTES = 8 << 20
_REPORT_SECONDS = 1.0
_LINE_BYTES = 500  # the estimated size of a line without its strings
Line = dict[str, Any]


class LogWriter:
    """Writes each line to `fd` in the format of `render`.

    `lost` returns the line that reports the number of lost lines.
    """

    def __init__(
        self, fd: int, render: Callable[[Line], bytes], lost: Callable[[int], Line], max_lines: int = MAX_LINES
    ) -> None:
        self._fd = fd
        self._render = render
        self._lost = lost
        self._queue: BoundedQueue[Line] = BoundedQueue(max_lines, MAX_BYTES)
        self._failed = 0
        self._reported = 0
        self._torn = False
        self._turns = ShortTurns()
        # the context contains the worker's index, which a new thread would lack
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="log", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """The number of lost lines."""
        return self._queue.rejected + self._failed

    def put(self, line: Line) -> None:
        """Queue a line without waiting."""
        self._queue.put(line, _LINE_BYTES + sum(sys.getsizeof(value) for value in line.values()))

    def close(self, seconds: float) -> None:
        """Write queued lines for at most `seconds`. The remaining lines are lost."""
        self._queue.close()
        self._thread.join(seconds)

    def _run(self) -> None:
        reported_at = float("-inf")
        while not self._queue.ended:
            line = self._queue.take(_REPORT_SECONDS if self.dropped > self._reported else None)
            now = time.monotonic()
            if self.dropped > self._reported and (line is None or now - reported_at >= _REPORT_SECONDS):
                reported_at = now
                self._report_lost()
            if line is not None:
                self._failed += not self._written(line)
            self._turns.give_way()

    def _report_lost(self) -> None:
        dropped = self.dropped
        if self._written(self._lost(dropped - self._reported)):
            self._reported = dropped

    def _written(self, line: Line) -> bool:
        try:
            data = self._render(line)
            with file_lock(self._fd, fcntl.lockf) if is_regular(self._fd) else nullcontext():
                append_lines(self._fd, b"\n" + data if self._torn else data)
            self._torn = False
        except PartialWrite as error:
            self._torn |= error.torn
            return False
        except Exception:  # neither a line's contents nor a disk error may end this thread
            return False
        return True
