"""Writes violation events as lines of a file (docs/violations.md), in a thread with a bounded queue.

Clients never wait for the file. Events that do not fit into the queue are dropped and counted. Failed writes are
counted, and one log line per minute gives the reason.

Several processes may append to the file. Each line is written completely or not at all. Other programs may move the
file away. A full file is rotated: the process that has the lock renames it by appending `.1`, which replaces the
previous `.1` file, and the other processes reopen the path.
"""

import contextvars
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from fcntl import flock
from itertools import accumulate
from pathlib import Path
from typing import Protocol

import structlog

from sluicegate.config.disk.deadline import within_deadline
from sluicegate.proxy.reporting.bounded_queue import BoundedQueue
from sluicegate.proxy.reporting.events.encoding import Encode, encode_json
from sluicegate.proxy.reporting.events.violation_event import Event
from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.reporting.whole_lines import PartialWrite, append_lines, ends_within_a_line, file_lock, is_regular
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.scheduling.short_turns import ShortTurns

_FLAGS = os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
# The file contains client names and may contain record contents. So only its owner, and a group that the operator
# chooses, can read it.
_MODE = 0o640
_MAX_TRIES = 100


class EventFile:
    """An event file, which only one thread may use. Raises OSError if the file cannot be opened."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._fd = _opened(path)
        self._torn = False

    def append(self, lines: Sequence[bytes]) -> None:
        """Append all lines. Raises PartialWrite, which contains the number of written lines."""
        written = 0
        tries = 0
        try:
            while written < len(lines):
                tries += 1
                if tries > _MAX_TRIES + len(lines):
                    raise OSError(f"{self._path} is moved away repeatedly")
                written += self._append_some(lines[written:])
        except PartialWrite as error:
            raise PartialWrite(error, written + error.lines, error.torn) from error
        except OSError as error:
            raise PartialWrite(error, written, torn=False) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _append_some(self, lines: Sequence[bytes]) -> int:
        """Write as many lines as fit into the file, and return their number.

        Return 0 if the file was rotated or reopened instead.
        """
        if not self._is_at_its_path():
            self._open_again()
        if not is_regular(self._fd):
            self._append(lines)
            return len(lines)
        with file_lock(self._fd, flock):
            if not self._is_at_its_path():
                return 0
            room = self._max_bytes - os.fstat(self._fd).st_size
            if room <= 0:
                self._path.replace(f"{self._path}.1")
                return 0
            before = accumulate((len(line) for line in lines), initial=0)
            some = lines[: sum(size < room for size in before)]
            self._append(some)
            return len(some)

    def _append(self, lines: Sequence[bytes]) -> None:
        if self._torn or ends_within_a_line(self._fd):
            append_lines(self._fd, b"\n")
        try:
            append_lines(self._fd, b"".join(lines))
            self._torn = False
        except PartialWrite as error:
            self._torn = error.torn
            raise

    def _is_at_its_path(self) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._fd))
        except FileNotFoundError:
            return False

    def _open_again(self) -> None:
        new = _opened(self._path)
        os.close(self._fd)
        self._fd = new
        self._torn = False


def _opened(path: Path) -> int:
    """Open the file without blocking, even if it is a pipe without a reader.

    If permitted, open it for reading too, to check its last byte.
    """
    fd = os.open(path, _FLAGS | os.O_WRONLY | os.O_NONBLOCK, _MODE)
    os.set_blocking(fd, True)
    if is_regular(fd):
        with suppress(OSError):
            readable = os.open(path, _FLAGS | os.O_RDWR, _MODE)
            os.close(fd)
            fd = readable
    return fd


QUEUE_FULL = "the queue is full because events are written too slowly"
_MAX_QUEUED_BYTES = 8 << 20
_MAX_WRITTEN_AT_ONCE = 64 << 10
_AT_THE_END_SECONDS = 3.0


class ViolationSink(Protocol):
    """A receiver of violation events. `write` must never wait."""

    def write(self, event: Event) -> None:
        """Accept an event."""

    def close(self) -> None:
        """Write the queued events, within a few seconds, and stop."""


class ViolationFile:
    """Appends events to a file in its own thread.

    Raises OSError if the file cannot be opened. `health` records the results of writes.
    """

    def __init__(
        self,
        path: Path,
        queue_size: int,
        max_file_bytes: int,
        counters: Counters,
        health: WriteHealth,
        encode: Encode = encode_json,
    ) -> None:
        self._encode = encode
        self._health = health
        self._destination = f"violations.file {path}"
        self._path = path
        self._counters = counters
        self._queue: BoundedQueue[Event] = BoundedQueue(queue_size, _MAX_QUEUED_BYTES)
        self._log = structlog.get_logger("sluicegate.violations")
        self._complaints = OnceAMinute()
        self._file = within_deadline((path, "open"), lambda: EventFile(path, max_file_bytes))
        context = contextvars.copy_context()  # the context contains the worker's index for log lines
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="violations", daemon=True)
        self._thread.start()

    def write(self, event: Event) -> None:
        """Queue an event without waiting."""
        if not self._queue.put(event, event.size):
            self._counters.violation_events_dropped += 1
            self._health.failed(self._destination, QUEUE_FULL)

    def close(self) -> None:
        """Write the queued events and stop within 3 s, even if the disk hangs.

        The remaining events are counted as failed.
        """
        self._queue.close()
        self._thread.join(_AT_THE_END_SECONDS)
        if self._thread.is_alive():
            left = len(self._queue)
            self._counters.violation_events_failed += left
            self._log.error("violation events lost at shutdown", file=str(self._path), events=left)

    def _run(self) -> None:
        turns = ShortTurns()
        while not self._queue.ended:
            lines: list[bytes] = []
            size = 0
            event = self._queue.take()
            while event is not None:
                line = self._line_of(event)
                lines.append(line)
                size += len(line)
                turns.give_way()
                event = self._queue.take(0) if size < _MAX_WRITTEN_AT_ONCE else None
            self._append([line for line in lines if line])
        self._file.close()

    def _line_of(self, event: Event) -> bytes:
        """Return an event's line. If it cannot be encoded, count the event and return an empty line."""
        try:
            return self._encode(event) + b"\n"
        except Exception as error:  # an event that cannot be encoded must not stop the next ones
            self._failed(1, error)
            return b""

    def _append(self, lines: list[bytes]) -> None:
        if not lines:
            return
        try:
            self._file.append(lines)
        except PartialWrite as error:
            self._failed(len(lines) - error.lines, error)
        except Exception as error:
            self._failed(len(lines), error)
        else:
            self._health.succeeded(self._destination)

    def _failed(self, events: int, error: Exception) -> None:
        self._counters.violation_events_failed += events
        reason = getattr(error, "strerror", None) or str(error)
        self._health.failed(self._destination, reason)
        times = self._complaints.due((type(error).__name__, reason))
        if times is not None:
            self._log.error(
                "violation events not written",
                file=str(self._path),
                reason=reason,
                lost_so_far=self._counters.violation_events_failed,
                advice="check that the disk of violations.file has free space and that the proxy may write the file",
            )


class SeveralSinks:
    """Passes every event to several sinks, which do not wait for each other."""

    def __init__(self, sinks: Sequence[ViolationSink]) -> None:
        self._sinks = sinks

    def write(self, event: Event) -> None:
        """Pass an event to each sink."""
        for sink in self._sinks:
            sink.write(event)

    def close(self) -> None:
        """Close all sinks in parallel."""
        threads = [threading.Thread(target=sink.close, name="violations end") for sink in self._sinks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
