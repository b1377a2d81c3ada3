"""Suspends enforcement at once, without a reload: for one topic or all, with a reason and an end time (break-glass).

Nothing is compiled or read for it, so that it works while the configuration file is broken. Suspensions are kept in
memory: a restart ends them.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from sluicegate.validation.rulebook import SuspendedTopics

ALL_TOPICS = "all topics"
MAX_SECONDS = 7 * 86_400
MAX_SUSPENSIONS = 100
"""Suspended topics at one time. All topics together can be suspended in addition."""


class TooManySuspensions(Exception):
    """The limit of suspended topics is reached; all topics together can still be suspended."""


@dataclass(frozen=True, slots=True)
class Suspension:
    """Enforcement is suspended for `topic` (None: all topics) until `until_ms` (Unix time, ms)."""

    topic: str | None
    reason: str
    until_ms: int

    def __str__(self) -> str:
        until = datetime.fromtimestamp(self.until_ms // 1000, UTC).isoformat().replace("+00:00", "Z")
        return f"enforcement is suspended for {self.topic or ALL_TOPICS} until {until}: {self.reason}"


class Enforcement:
    """The suspensions of one proxy. Belongs to its event loop; `suspensions` may be read from any thread.

    `apply` puts them in force, without waiting.
    """

    def __init__(
        self,
        status: Status,
        apply: Callable[[SuspendedTopics], None],
        now_ms: Callable[[], int] = lambda: time.time_ns() // 10**6,
    ) -> None:
        self._status = status
        self._apply = apply
        self._now_ms = now_ms
        self._active: dict[str | None, Suspension] = {}
        self._log = structlog.get_logger("sluicegate")
        self.suspensions: tuple[Suspension, ...] = ()

    def suspend(self, topic: str | None, reason: str, seconds: int) -> Suspension:
        """Suspend enforcement for a topic, or for all; replaces an earlier suspension of the same.

        Raises TooManySuspensions.
        """
        self.check_room([] if topic is None else [topic])
        suspension = Suspension(topic, cut(reason), self._now_ms() + seconds * 1000)
        self._active[topic] = suspension
        self._put_in_force()
        self._status.begin(Condition.ENFORCEMENT_SUSPENDED, str(suspension), topic or ALL_TOPICS)
        self._log.warning("enforcement suspended", topic=topic or ALL_TOPICS, reason=suspension.reason, seconds=seconds)
        return suspension

    def check_room(self, topics: Collection[str]) -> None:
        """Raises TooManySuspensions if not all of these topics can be suspended."""
        if len({*self._active, *topics} - {None}) > MAX_SUSPENSIONS:
            raise TooManySuspensions

    def resume(self, topic: str | None) -> bool:
        """End the suspension of a topic; None: end all suspensions. Return whether there was one."""
        ended = [each for each in self._active if topic in (None, each)]
        self._end(ended, "requested")
        return bool(ended)

    def end_due(self) -> None:
        """End the suspensions whose end time has come."""
        now = self._now_ms()
        self._end([topic for topic, each in self._active.items() if each.until_ms <= now], "end time reached")

    def lines_about(self, topic: str) -> list[str]:
        """Return a line for each suspension that applies to `topic`."""
        return [f"  {each}" for each in self.suspensions if each.topic in (None, topic)]

    def _end(self, topics: list[str | None], cause: str) -> None:
        if not topics:
            return
        for topic in topics:
            del self._active[topic]
        self._put_in_force()
        for topic in topics:
            self._status.end(Condition.ENFORCEMENT_SUSPENDED, topic or ALL_TOPICS)
            self._log.info("enforcement resumed", topic=topic or ALL_TOPICS, cause=cause)

    def _put_in_force(self) -> None:
        self.suspensions = tuple(self._active.values())
        self._apply(self.in_force)

    @property
    def in_force(self) -> SuspendedTopics:
        """The topics without enforcement now. Thread-safe."""
        topics = {each.topic for each in self.suspensions}
        return SuspendedTopics(None in topics, frozenset(topic for topic in topics if topic is not None))
