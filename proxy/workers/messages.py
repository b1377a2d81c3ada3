"""The messages between the supervisor and its workers, and the threads that send and receive them.

The threads prevent a pipe from blocking an event loop.
"""

from collections.abc import Callable, Mapping
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
from sluicegate.proxy.session.topic_settings import Failures, Requester, SettingsChange
from sluicegate.proxy.state.settings_table import TopicValues
from sluicegate.proxy.status.status import ActiveCondition, Successes
from sluicegate.validation.rulebook import SuspendedTopics

_ENDS_WITHIN_SECONDS = 5.0


class Command(Enum):
    """A request from the supervisor without arguments."""

    REPORT = auto()
    DRAIN = auto()
    SETTINGS_READ = auto()


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """The worker accepts connections."""


@dataclass(frozen=True, slots=True)
class CouldNotStart:
    """The worker could not start. `reason` includes advice."""

    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """A worker's counters and active conditions, and the times of its last successes."""

    snapshot: Snapshot
    conditions: tuple[ActiveCondition, ...]
    successes: Successes


@dataclass(frozen=True, slots=True)
class Compile:
    """The supervisor's request to compile a configuration's policies, on a reload.

    The first request has number 1. `source` maps the configuration's keys to their places.
    """

    config: Config
    number: int
    source: Source


@dataclass(frozen=True, slots=True)
class PoliciesCompiled:
    """The policies with this number are compiled. `problem` explains why they cannot be used, or is None."""

    number: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Adopt:
    """The supervisor's request to put the policies with this number in force."""

    number: int


@dataclass(frozen=True, slots=True)
class Adopted:
    """The policies with this number are in force."""

    number: int


@dataclass(frozen=True, slots=True)
class Suspend:
    """The supervisor's request to suspend enforcement for exactly these topics."""

    suspended: SuspendedTopics
    number: int


@dataclass(frozen=True, slots=True)
class Suspended:
    """The suspensions in the request with this number are in force."""

    number: int


@dataclass(frozen=True, slots=True)
class AdoptSettings:
    """The supervisor's request to put changed topic settings in force. None stands for a topic without settings."""

    changes: Mapping[str, TopicValues | None]
    number: int


@dataclass(frozen=True, slots=True)
class SettingsAdopted:
    """The topic settings in the request with this number are in force."""

    number: int


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """A worker's request to store changes of topic settings for a client."""

    changes: tuple[SettingsChange, ...]
    requester: Requester
    number: int


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The supervisor's response to the request with this number: the failure of each topic whose change failed."""

    failed: Failures
    number: int


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """The supervisor's request for a snapshot, sent while the web UI is open."""

    query: LiveQuery
    number: int


@dataclass(frozen=True, slots=True)
class WorkerSnapshot:
    """A worker's snapshot, in response to the request with this number."""

    state: LiveState
    number: int


Request = Command | Compile | Adopt | Suspend | AdoptSettings | SettingsChanged | SnapshotRequest
"""The messages from a supervisor to a worker."""
Message = (
    WorkerSnapshot
    | WorkerStarted
    | CouldNotStart
    | Report
    | PoliciesCompiled
    | Adopted
    | Suspended
    | SettingsAdopted
    | ChangeSettings
)
"""The messages from a worker to its supervisor."""


class Inbox:
    """Receives all messages from one pipe in a thread.

    The pipe stays blocking. An event loop would make it non-blocking, and then read only part of a message that is
    longer than the system's buffer.
    """

    def __init__(
        self,
        pipe: Connection,
        name: str,
        from_thread: Callable[..., Any],
        on_message: Callable[[Any], None],
        ended: Callable[[], None],
    ) -> None:
        """`on_message` is called with each message, and `ended` at the end.

        `from_thread` runs both on an event loop.
        """
        self._pipe = pipe
        self._from_thread = from_thread
        self._on_message = on_message
        self._ended = ended
        self._thread = Thread(target=self._listen, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait until the thread ends, before the pipe is closed and its descriptor number is reused."""
        self._thread.join(_ENDS_WITHIN_SECONDS)

    def _listen(self) -> None:
        with suppress(RuntimeError):  # the event loop is closed
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
        """Queue a message, which must be picklable."""
        self._messages.put(message)

    def close(self) -> None:
        """Wait until the thread ends, before the pipe is closed and its descriptor number is reused."""
        self._messages.put(None)
        self._thread.join(_ENDS_WITHIN_SECONDS)

    def _send(self) -> None:
        while (message := self._messages.get()) is not None:
            try:
                self._pipe.send(message)
            except OSError:
                return
