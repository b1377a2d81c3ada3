"""Hears what another process says. What is long arrives in pieces: who waits for its end waits in a thread here."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

from sluicegate.config.model import Config
from sluicegate.proxy.live.live_snapshot import LiveQuery
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.reporting.metrics.counters import Snapshot
from sluicegate.proxy.status.status import ActiveCondition

_ENDS_WITHIN_SECONDS = 5.0


class Word(Enum):
    """What a supervisor says."""

    REPORT = auto()
    DRAIN = auto()


@dataclass(frozen=True, slots=True)
class Started:
    """The worker takes connections."""


@dataclass(frozen=True, slots=True)
class CouldNotStart:
    """The worker ends; the text says what to change."""

    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """A worker's counters and its active conditions."""

    snapshot: Snapshot
    conditions: tuple[ActiveCondition, ...]


@dataclass(frozen=True, slots=True)
class Compile:
    """A supervisor's request on a reload, the first time with number 1: compile this configuration's policies."""

    config: Config
    number: int


@dataclass(frozen=True, slots=True)
class Compiled:
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
class Look:
    """What a supervisor says while somebody looks."""

    wish: LiveQuery
    number: int


@dataclass(frozen=True, slots=True)
class Looked:
    """What a worker sees, for the look of that number."""

    state: LiveState
    number: int


Message = Looked | Started | CouldNotStart | Report | Compiled | Adopted


class Inbox:
    """Of one pipe, which nobody else reads. The pipe stays a blocking one: a loop that watched it would change that,
    and of a message longer than the system's buffer it would then find a part, and no more.
    """

    def __init__(
        self,
        pipe: Connection,
        name: str,
        from_thread: Callable[..., Any],
        heard: Callable[[Any], None],
        ended: Callable[[], None],
    ) -> None:
        """`heard` is told each message, `ended` that the other side is gone; both run by `from_thread`, on a loop."""
        self._pipe = pipe
        self._from_thread = from_thread
        self._heard = heard
        self._ended = ended
        self._thread = Thread(target=self._listen, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The other side is gone. Ends before the pipe is closed, whose number another file might get."""
        self._thread.join(_ENDS_WITHIN_SECONDS)

    def _listen(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            while True:
                try:
                    message = self._pipe.recv()
                except (EOFError, OSError):
                    self._from_thread(self._ended)
                    return
                self._from_thread(self._heard, message)


class Outbox:
    """Of one pipe, in the order in which it is told; nobody else writes there. What nobody hears any more is lost."""

    def __init__(self, pipe: Connection, name: str) -> None:
        self._pipe = pipe
        self._words: SimpleQueue[object] = SimpleQueue()
        self._thread = Thread(target=self._send, name=name, daemon=True)
        self._thread.start()

    @property
    def is_behind(self) -> bool:
        """Whether something still waits to be said."""
        return not self._words.empty()

    def say(self, word: object) -> None:
        """Whatever can be pickled."""
        self._words.put(word)

    def close(self) -> None:
        """The other side is gone. Ends before the pipe is closed, whose number another file might get."""
        self._words.put(None)
        self._thread.join(_ENDS_WITHIN_SECONDS)

    def _send(self) -> None:
        while (word := self._words.get()) is not None:
            try:
                self._pipe.send(word)
            except OSError:
                return
