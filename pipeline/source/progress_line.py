"""Shows the number of offsets that a job has read in one line, on the terminal or below the cell of a notebook.

The line counts offsets instead of tasks, because a large partition has only a few tasks. Executors send their counts
(`sluicegate.pipeline.kafka.read_offsets`).
"""

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from secrets import token_hex
from typing import Any, TextIO

from pyspark.sql import SparkSession

from sluicegate.pipeline.kafka.read_offsets import PROPERTY

_EVERY_SECONDS = 0.5
_LARGEST_DATAGRAM = 1024
_MOST_PROCESSES = 10_000
_ERASE = "\r\x1b[K"


class ReadOffsets:
    """Counts the offsets that a job plans to read and the offsets that its processes report as read."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._planned = self._before = 0
        self._of_processes: dict[str, int] = {}

    @property
    def done(self) -> int:
        """Return how many of the planned offsets have been read."""
        return sum(self._of_processes.values()) - self._before

    def plan(self, offsets: int) -> None:
        """Add planned offsets. If all earlier offsets have been read, counting starts again."""
        if self.done >= self._planned:
            self._before, self._planned = self._before + self.done, 0
        self._planned += offsets

    def take(self, datagram: bytes) -> None:
        """Process a datagram from a task. Invalid datagrams are ignored."""
        try:
            token, process, count = json.loads(datagram)
        except (ValueError, TypeError):
            return
        is_known = process in self._of_processes or len(self._of_processes) < _MOST_PROCESSES
        if token == self._token and isinstance(process, str) and isinstance(count, int) and is_known:
            self._of_processes[process] = count

    def in_words(self, per_second: float) -> str:
        """Return a line such as `1,200,000 of 3,000,000 offsets read (40 %), 600,000/s`."""
        of = f" of {self._planned:,}" if self.done <= self._planned else ""
        share = f" ({100 * self.done // self._planned} %)" if of and self._planned else ""
        return f"{self.done:,}{of} offsets read{share}, {per_second:,.0f}/s"


class _Current:
    """The counter that is currently shown, if any."""

    reading: ReadOffsets | None = None


class _Line:
    """The last line on the terminal."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._is_there = False
        self._lock = threading.RLock()

    def show(self, text: str) -> None:
        with self._lock:
            self._terminal.write(_ERASE + text)
            self._terminal.flush()
            self._is_there = True

    def erase(self) -> None:
        with self._lock:
            if self._is_there:
                self._terminal.write(_ERASE)
                self._terminal.flush()
                self._is_there = False


class _Display:
    """A line below a notebook's cell, which is updated in place."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, text: str) -> None:
        self._handle.update({"text/plain": text}, raw=True)

    def erase(self) -> None:
        self.show("")


def _notebook() -> Callable[..., Any] | None:
    """Return the display function of the notebook's kernel; None outside a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:
        return None
    found: Callable[..., Any] = sys.modules["IPython.display"].display
    return found


class _Erasing:
    """A stream to the same terminal that erases the progress line before it writes."""

    def __init__(self, stream: TextIO, line: _Line) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        self._line.erase()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def plan(offsets: int) -> None:
    """Add planned offsets to the counter that is shown, if any."""
    if _Current.reading is not None:
        _Current.reading.plan(offsets)


@contextmanager
def shown_in_notebook(spark: SparkSession, job: str) -> Iterator[None]:
    """Show the job's progress below a notebook's cell while the block runs."""
    display = _notebook()
    if display is None:
        yield
        return
    with _counted(spark, job, _Display(display)):
        yield


@contextmanager
def progress_shown(spark: SparkSession, job: str) -> Iterator[None]:
    """Show the job's progress while the block runs, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    line = _Line(sys.stderr)
    with (
        redirect_stdout(_Erasing(sys.stdout, line)),
        redirect_stderr(_Erasing(sys.stderr, line)),
        _counted(spark, job, line),
    ):
        yield


@contextmanager
def _counted(spark: SparkSession, job: str, line: _Line | _Display) -> Iterator[None]:
    """Receive the counts from a job's tasks and show them on a line while the block runs."""
    token, context = token_hex(8), spark.sparkContext
    ended, reading = threading.Event(), ReadOffsets(token)
    with ExitStack() as stack:
        receiver = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        is_here = str(context.master).startswith("local[") or context.master == "local"
        host = "127.0.0.1" if is_here else str(context.getConf().get("spark.driver.host", "127.0.0.1"))
        receiver.bind((host if is_here else "", 0))
        receiver.settimeout(_EVERY_SECONDS)
        context.setLocalProperty(PROPERTY, json.dumps([host, receiver.getsockname()[1], token]))
        thread = threading.Thread(target=_listen, args=(receiver, reading, line, job, ended), daemon=True)
        thread.start()
        _Current.reading = reading
        try:
            yield
        finally:
            _Current.reading = None
            ended.set()
            thread.join()
            line.erase()


def _listen(
    receiver: socket.socket, reading: ReadOffsets, line: _Line | _Display, job: str, ended: threading.Event
) -> None:
    shown_at, shown_done = time.monotonic(), 0
    while not ended.is_set():
        try:
            reading.take(receiver.recv(_LARGEST_DATAGRAM))
        except TimeoutError:
            continue
        now, done = time.monotonic(), reading.done
        if now >= shown_at + _EVERY_SECONDS:
            line.show(f"{job}: {reading.in_words(max(done - shown_done, 0) / (now - shown_at))}")
            shown_at, shown_done = now, done
