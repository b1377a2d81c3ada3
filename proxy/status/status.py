"""One process's status. Conditions are set and cleared, and the active conditions determine the state."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.waiting_clients import WaitingNames, merge_waiting
from sluicegate.proxy.reporting.write_health import QUIET_SECONDS
from sluicegate.proxy.status.condition import Condition, ServingState

_STUCK_SECONDS = 10
_MAX_SUBJECTS = 100
_NOT_LOGGED = frozenset({Condition.STARTING, Condition.DRAINING, Condition.EVENT_LOOP_STUCK})
# The causes of these conditions are logged as separate events with more fields.
_LOGGED_BY_CAUSE = frozenset(
    {
        Condition.UPSTREAM_UNREACHABLE,
        Condition.UPSTREAM_NOT_A_BROKER,
        Condition.PROXY_LOGIN_REJECTED,
        Condition.CONFIGURATION_REJECTED,
        Condition.POLICY_FILE_MISSING,
        Condition.ENFORCEMENT_SUSPENDED,
        Condition.WORKER_RESTARTED,
    }
)
# Conditions about the cluster, which is the same for every worker. Without this exception, a worker that has not yet
# checked the cluster again would count as serving.
_OF_THE_CLUSTER = frozenset({Condition.NO_BROKER_LISTED})
_ORDER = {condition: number for number, condition in enumerate(Condition)}


@dataclass(frozen=True, slots=True)
class ActiveCondition:
    """A condition that has been active since `since_ms` (Unix time, ms).

    `subject` is the broker, topic or worker, or is empty. `state` is the state of the condition's type, or a better one
    if other workers of the process serve. `waiting` contains the clients that wait for the end of the condition; it is
    None if clients never wait for it. `failed_at` (s, monotonic) is the time of the failure that led to the condition,
    which a later success of another worker refutes. `failed_at` is None if the condition was observed directly.
    """

    condition: Condition
    state: ServingState
    subject: str
    detail: str
    since_ms: int
    waiting: WaitingNames | None = None
    failed_at: float | None = None

    @property
    def text(self) -> str:
        """The detail, followed by the clients that wait."""
        return self.detail if self.waiting is None else f"{self.detail}; {self.waiting}"

    def __str__(self) -> str:
        return f"{self.condition.value}: {self.text}"


def state_of(active: Sequence[ActiveCondition]) -> ServingState:
    """Return the worst state of these conditions."""
    states = {each.state for each in active}
    return next(
        (state for state in (ServingState.NOT_SERVING, ServingState.NEEDS_ATTENTION) if state in states),
        ServingState.SERVING,
    )


def gauges_of(active: Sequence[ActiveCondition]) -> dict[tuple[str, str], int]:
    """Return the gauges: 1 for each of these conditions with its subject, and 0 without a subject for every other
    condition.
    """
    ones = {(each.condition.value, each.subject): 1 for each in active}
    inactive = {condition.value for condition in Condition} - {condition for condition, _ in ones}
    return ones | {(condition, ""): 0 for condition in inactive}


class Status:
    """One process's status, which begins as `starting`.

    It is thread-safe, because the event loop writes it and the admin endpoint's thread reads it.
    """

    def __init__(
        self, seconds: Callable[[], float] = time.monotonic, now_ms: Callable[[], int] = lambda: time.time_ns() // 10**6
    ) -> None:
        self._seconds = seconds
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._active: dict[tuple[Condition, str], tuple[ActiveCondition, float]] = {}
        self._of_workers: tuple[ActiveCondition, ...] = ()
        self._last_beat = seconds()
        self._log = structlog.get_logger("sluicegate")
        self.begin(Condition.STARTING, "starting")

    def beat(self) -> None:
        """Record that the event loop is running, and clear conditions whose last report has expired."""
        self._last_beat = now = self._seconds()
        with self._lock:
            for key, (active, reported_at) in list(self._active.items()):
                lasts = active.condition.type.lasts_seconds
                if lasts is not None and now - reported_at > lasts:
                    self._end(key)

    def begin(
        self,
        condition: Condition,
        detail: str,
        subject: str = "",
        waiting: WaitingNames | None = None,
        failed_at: float | None = None,
    ) -> None:
        """Set the condition, or update its detail and the clients that wait for its end.

        At most 100 subjects per condition are listed.
        """
        key, detail = (condition, cut(subject)), cut(detail)
        with self._lock:
            known = self._active.get(key)
            if known is not None:
                changed = replace(known[0], detail=detail, waiting=waiting, failed_at=failed_at)
                self._active[key] = (changed, self._seconds())
                return
            if sum(each is condition for each, _ in self._active) >= _MAX_SUBJECTS:
                return
            active = ActiveCondition(
                condition, condition.type.state, key[1], detail, self._now_ms(), waiting, failed_at
            )
            self._active[key] = (active, self._seconds())
        if condition not in _NOT_LOGGED | _LOGGED_BY_CAUSE:
            self._log.warning("condition began", condition=condition.value, detail=active.text)

    def end(self, condition: Condition, subject: str | None = None) -> None:
        """Clear the condition for one subject, or for all subjects if `subject` is None."""
        with self._lock:
            for key in [key for key in self._active if key[0] is condition and subject in (None, key[1])]:
                self._end(key)

    def set(self, condition: Condition, detail: str | None) -> None:
        """Set the condition with this detail, or clear it if `detail` is None."""
        if detail is None:
            self.end(condition)
        else:
            self.begin(condition, detail)

    def set_all(self, condition: Condition, details: Mapping[str, str]) -> None:
        """Set the condition for each of these subjects, with its detail, and clear it for every other subject."""
        self.exchange({condition: details})

    def exchange(self, conditions: Mapping[Condition, Mapping[str, str]]) -> None:
        """Update each condition as `set_all` does.

        All new conditions are set before any is cleared, so that a reader never sees an intermediate state.
        """
        for condition, details in conditions.items():
            for subject, detail in details.items():
                self.begin(condition, detail, subject)
        for condition, details in conditions.items():
            self.end_others(condition, details)

    def end_others(self, condition: Condition, subjects: Iterable[str]) -> None:
        """Clear the condition for all subjects except these."""
        kept = {cut(subject) for subject in subjects}
        with self._lock:
            for key in [key for key in self._active if key[0] is condition and key[1] not in kept]:
                self._end(key)

    def adopt(self, workers: Sequence[ActiveCondition]) -> None:
        """Show these conditions of worker processes in addition to this process's own."""
        self._of_workers = tuple(workers)

    def not_live(self) -> str | None:
        """Return why the process should be restarted, or None."""
        stuck = [
            active.detail for (condition, _), (active, _) in self._copy() if condition is Condition.EVENT_LOOP_STUCK
        ]
        if stuck:
            return stuck[0]
        silent = self._seconds() - self._last_beat
        return f"the event loop has not moved for {silent:.0f} s" if silent > _STUCK_SECONDS else None

    def active(self) -> list[ActiveCondition]:
        """Return the active conditions, most severe first."""
        found = [active for _, (active, _) in self._copy()]
        stuck = self.not_live()
        if stuck is not None and all(each.condition is not Condition.EVENT_LOOP_STUCK for each in found):
            found.append(
                ActiveCondition(Condition.EVENT_LOOP_STUCK, ServingState.NOT_SERVING, "", stuck, self._now_ms())
            )
        found += self._of_workers
        return sorted(
            found, key=lambda each: (each.state is not ServingState.NOT_SERVING, _ORDER[each.condition], each.subject)
        )

    def not_ready(self) -> str | None:
        """Return why clients cannot be served, or None."""
        return next((each.detail for each in self.active() if each.state is ServingState.NOT_SERVING), None)

    def _copy(self) -> list[tuple[tuple[Condition, str], tuple[ActiveCondition, float]]]:
        with self._lock:
            return list(self._active.items())

    def _end(self, key: tuple[Condition, str]) -> None:
        active, _ = self._active.pop(key)
        if active.condition not in _NOT_LOGGED:
            seconds = round((self._now_ms() - active.since_ms) / 1000, 1)
            self._log.info(
                "condition ended", condition=active.condition.value, subject=active.subject or None, seconds=seconds
            )


Successes = Mapping[tuple[Condition, str], float]
"""The time (s, monotonic) of the last success, by the condition that a failure sets, and by its subject."""


def not_refuted(
    conditions: Sequence[ActiveCondition], of_others: Sequence[Successes], now: float
) -> list[ActiveCondition]:
    """Return a worker's conditions without the refuted ones.

    A condition is refuted if another worker has succeeded after the failure that led to it. Otherwise a worker that is
    no longer used would report its last failure until that failure is forgotten. `now` is monotonic. The clock is the
    same for all processes on a machine.
    """

    def is_refuted(each: ActiveCondition) -> bool:
        failed_at = each.failed_at
        if failed_at is None or now - failed_at <= QUIET_SECONDS:
            return False
        return any(found.get((each.condition, each.subject), failed_at) > failed_at for found in of_others)

    return [each for each in conditions if not is_refuted(each)]


def of_workers(reports: Sequence[tuple[int, Sequence[ActiveCondition]]]) -> list[ActiveCondition]:
    """Return the conditions of a process whose workers report these.

    `reports` contains each worker's number. If a condition stops one worker from serving, the process needs attention,
    but keeps serving as long as another worker does. Conditions about the cluster are an exception.
    """
    one_serves = any(state_of(conditions) is not ServingState.NOT_SERVING for _, conditions in reports)
    found: dict[tuple[Condition, str], ActiveCondition] = {}
    for number, conditions in reports:
        for each in conditions:
            shown = each
            if one_serves and each.state is ServingState.NOT_SERVING and each.condition not in _OF_THE_CLUSTER:
                detail = cut(f"worker {number}: {each.detail}")
                shown = replace(each, state=ServingState.NEEDS_ATTENTION, subject=f"worker {number}", detail=detail)
            known = found.get((shown.condition, shown.subject))
            found[shown.condition, shown.subject] = shown if known is None else _both(known, shown)
    return list(found.values())


def _both(one: ActiveCondition, other: ActiveCondition) -> ActiveCondition:
    """Return the condition of two workers: the older one, with the clients of both."""
    older = min(one, other, key=lambda each: each.since_ms)
    return replace(older, waiting=merge_waiting(one.waiting, other.waiting))
