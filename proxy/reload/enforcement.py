"""Suspends enforcement without a reload, for one topic or all, with a reason and an end time (break-glass).

A suspension takes effect immediately. It compiles and reads nothing, so it works even while the configuration file is
broken. A proxy keeps its own suspensions in memory, so a restart ends them. Suspensions for all proxies are kept in the
state topic (`proxy/state/`).
"""

import time
from collections.abc import Awaitable, Callable, Collection, Sequence

import structlog

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.state.suspension import ALL_TOPICS, Suspension, SuspensionScope
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from sluicegate.validation.rulebook import SuspendedTopics

MAX_SECONDS = 7 * 86_400
MAX_SUSPENSIONS = 100
"""The maximum number of suspended topics. All topics together can be suspended in addition."""


class TooManySuspensions(Exception):
    """The limit of suspended topics is reached. All topics together can still be suspended."""


async def _at_once() -> None:
    """Do nothing, because every change is in force as soon as it is applied."""


class Enforcement:
    """One proxy's suspensions.

    It belongs to the proxy's event loop, but any thread may read `suspensions`.

    `apply` puts suspensions in force without waiting. `all_in_force` waits until they are in force in all workers, and
    raises TimeoutError if a worker does not respond.
    """

    def __init__(
        self,
        status: Status,
        apply: Callable[[SuspendedTopics], None],
        now_ms: Callable[[], int] = lambda: time.time_ns() // 10**6,
        all_in_force: Callable[[], Awaitable[None]] = _at_once,
    ) -> None:
        self._status = status
        self._apply = apply
        self._now_ms = now_ms
        self.all_in_force = all_in_force
        self._own: dict[str | None, Suspension] = {}
        self._agreed: dict[str | None, Suspension] = {}
        self._log = structlog.get_logger("sluicegate")
        self.suspensions: tuple[Suspension, ...] = ()

    def suspend(self, topic: str | None, reason: str, seconds: int) -> Suspension:
        """Suspend this proxy's enforcement for a topic, or for all topics if `topic` is None.

        The new suspension replaces the proxy's earlier suspension of the same topic. Raises TooManySuspensions.
        """
        self.check_room([] if topic is None else [topic])
        suspension = Suspension(topic, cut(reason), self.end_after(seconds))
        self._own[topic] = suspension
        self._put_in_force("requested")
        return suspension

    def end_after(self, seconds: int) -> int:
        """Return the end time (Unix time, ms) of a suspension that begins now."""
        return self._now_ms() + seconds * 1000

    def check_room(self, topics: Collection[str]) -> None:
        """Check that all of these topics can be suspended. Raises TooManySuspensions."""
        if len({*self._own, *self._agreed, *topics} - {None}) > MAX_SUSPENSIONS:
            raise TooManySuspensions

    def resume(self, topic: str | None) -> bool:
        """End this proxy's own suspension of a topic, or all its own suspensions if `topic` is None.

        Return whether there was one.
        """
        ended = [each for each in self._own if topic in (None, each)]
        for each in ended:
            del self._own[each]
        if ended:
            self._put_in_force("requested")
        return bool(ended)

    def adopt(self, agreed: Sequence[Suspension]) -> None:
        """Put the suspensions for all proxies in force. They replace the previous ones."""
        now = self._now_ms()
        self._agreed = {each.topic: each for each in agreed if each.until_ms > now}
        self._put_in_force("state topic")

    def end_due(self) -> None:
        """End the suspensions whose end time has passed."""
        now = self._now_ms()
        if all(each.until_ms > now for each in self.suspensions):
            return
        self._own = {topic: each for topic, each in self._own.items() if each.until_ms > now}
        self._agreed = {topic: each for topic, each in self._agreed.items() if each.until_ms > now}
        self._put_in_force("end time reached")

    def lines_about(self, topic: str) -> list[str]:
        """Return a line for each suspension that applies to `topic`."""
        return [f"  {each}" for each in self.suspensions if each.topic in (None, topic)]

    def _put_in_force(self, cause: str) -> None:
        before, self.suspensions = self.suspensions, (*self._own.values(), *self._agreed.values())
        self._apply(self.in_force)
        texts: dict[str, list[str]] = {}
        for each in self.suspensions:
            texts.setdefault(each.topic or ALL_TOPICS, []).append(str(each))
        self._status.set_all(Condition.ENFORCEMENT_SUSPENDED, {subject: "; ".join(t) for subject, t in texts.items()})
        for each in self.suspensions:
            if each not in before:
                self._log.warning(
                    "enforcement suspended",
                    topic=each.topic or ALL_TOPICS,
                    reason=each.reason,
                    seconds=(each.until_ms - self._now_ms()) // 1000,
                    **({} if each.scope is SuspensionScope.PROXY else {"scope": each.scope.value, "actor": each.actor}),
                )
        still = {(each.topic, each.scope) for each in self.suspensions}
        for each in before:
            if (each.topic, each.scope) not in still:
                self._log.info("enforcement resumed", topic=each.topic or ALL_TOPICS, cause=cause)

    @property
    def in_force(self) -> SuspendedTopics:
        """The topics without enforcement now. Thread-safe."""
        topics = {each.topic for each in self.suspensions}
        return SuspendedTopics(None in topics, frozenset(topic for topic in topics if topic is not None))
