"""Messages between the supervisor and its workers, and threads that send and receive them without blocking a loop."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

from sluicegate.config.files.source import Source
from sluicegate.config.model import Config
from sluicegate.proxy.live.live_snapshot import LiveQuery
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.reporting.metrics.counters import Snapshot
from sluicegate.proxy.status.status import ActiveCondition, Successes
from sluicegate.validation.rulebook import SuspendedTopics

_ENDS_WITHIN_SECONDS = 5.0


class Command(Enum):
    """A supervisor's request without arguments."""

    REPORT = auto()
    DRAIN = auto()


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """The worker accepts connections."""


@dataclass(frozen=True, slots=True)
class CouldNotStart:
    """The worker could not start; `reason` says what to change."""

    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """A worker's counters and its active conditions, and what has succeeded in it."""

    snapshot: Snapshot
    conditions: tuple[ActiveCondition, ...]
    successes: Successes


@dataclass(frozen=True, slots=True)
class Compile:
    """A supervisor's request on a reload, the first time with number 1: compile this configuration's policies.

    `source`: the places of their keys.
    """

    config: Config
    number: int
    source: Source


@dataclass(frozen=True, slots=True)
class PoliciesCompiled:
    """The policies of that number are compiled; `problem`: why they cannot be used."""

    number: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Adopt:
    """A supervisor's request: put the policies of that number in force."""

    number: int


@dataclass(frozen=True, slots=True)
class Adopted:
    """The policies of that number are in force."""

    number: int


@dataclass(frozen=True, slots=True)
class Suspend:
    """A supervisor's request: suspend enforcement for these topics, and for no others."""

    suspended: SuspendedTopics
    number: int


@dataclass(frozen=True, slots=True)
class Suspended:
    """The request with that number is in force."""

    number: int


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """A supervisor's request for a snapshot, while the web UI is open."""

    query: LiveQuery
    number: int


@dataclass(frozen=True, slots=True)
class WorkerSnapshot:
    """A worker's snapshot, in response to the request with that number."""

    state: LiveState
    number: int


Request = Command | Compile | Adopt | Suspend | SnapshotRequest
"""What a supervisor sends."""
Message = WorkerSnapshot | WorkerStarted | CouldNotStart | Report | PoliciesCompiled | Adopted | Suspended
"""What a worker sends."""


class Inbox:
    """Receives all messages of one pipe in a thread. The pipe stays blocking: an event loop would make it non-blocking,
    and then find only a part of a message that is longer than the system's buffer.
    """

    def __init__(
        self,
        pipe: Connection,
        name: str,
        from_thread: Callable[..., Any],
        on_message: Callable[[Any], None],
        ended: Callable[[], None],
    ) -> None:
        """`on_message` is called with each message, `ended` at the end; both on an event loop, by `from_thread`."""
        self._pipe = pipe
        self._from_thread = from_thread
        self._on_message = on_message
        self._ended = ended
        self._thread = Thread(target=self._listen, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for the thread to end, before the pipe is closed and its descriptor number is used again."""
        self._thread.join(_ENDS_WITHIN_SECONDS)

    def _listen(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            while True:
                try:
                    message = self._pipe.recv()
                except (EOFError, OSError):
                    self._from_thread(self._ended)
                    return
                self._from_thread(self._on_message, message)


class Outbox:
    """Sends messages into one pipe in order, from a thread. Messages to a process that has ended are dropped."""

    def __init__(self, pipe: Connection, name: str) -> None:
        self._pipe = pipe
        self._messages: SimpleQueue[object] = SimpleQueue()
        self._thread = Thread(target=self._send, name=name, daemon=True)
        self._thread.start()

    @property
    def is_behind(self) -> bool:
        """Whether a message is waiting to be sent."""
        return not self._messages.empty()

    def send(self, message: object) -> None:
        """Queue a message; it must be picklable."""
        self._messages.put(message)

    def close(self) -> None:
        """Wait for the thread to end, before the pipe is closed and its descriptor number is used again."""
        self._messages.put(None)
        self._thread.join(_ENDS_WITHIN_SECONDS)

    def _send(self) -> None:
        while (message := self._messages.get()) is not None:
            try:
                self._pipe.send(message)
            except OSError:
                return
