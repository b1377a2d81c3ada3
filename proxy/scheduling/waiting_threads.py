"""Validates requests whose rules look something up, in a few threads that may wait.

Only one of these threads validates while the others wait, so the event loop competes with at most two threads. Clients
share the threads fairly (`sluicegate.proxy.scheduling.fair_sharing`), so a client with many lookups waits only for its
own.
"""

import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from sluicegate.protocol.records.codecs.decompression_budget import Abandoned
from sluicegate.proxy.scheduling.fair_sharing import FairSlots
from sluicegate.proxy.scheduling.short_turns import ShortTurns
from sluicegate.proxy.scheduling.wait_budget import CpuTimeAllowance, WaitBudget

MOST_THREADS = 16
MOST_COSTLY_THREADS = 4
# The total time that one request may wait for its lookups.
WAIT_BUDGET_SECONDS = 2.0


class Abandonable(Protocol):
    """A job that can be abandoned."""

    is_abandoned: bool

    @property
    def on_behalf_of(self) -> Hashable:
        """The job's client."""


J = TypeVar("J", bound=Abandonable)
GiveWay = Callable[[], None]


class WaitingThreads(Generic[J]):
    """Threads that run jobs that may wait. At most `threads` jobs run at a time.

    `validate` does one whole job and sets its result. Its last argument lets other jobs run. `cpu_time` is how much CPU
    time of the rules process a job may wait for in one evaluation.
    """

    def __init__(
        self,
        validate: Callable[[J, GiveWay], None],
        wait_budget: WaitBudget,
        cpu_time: CpuTimeAllowance = CpuTimeAllowance.WHOLE,
        threads: int = MOST_THREADS,
    ) -> None:
        self._validate = validate
        self._wait_budget = wait_budget
        self._cpu_time = cpu_time
        # The jobs by client. The most recently served client is last.
        self._jobs: dict[Hashable, deque[J]] = {}
        self._places = FairSlots(threads)
        self._changing = threading.Lock()
        self._validating = threading.Lock()
        self._closed = False

    def add(self, job: J) -> None:
        """Validate a job from the beginning as soon as a thread is free."""
        with self._changing:
            self._jobs.setdefault(job.on_behalf_of, deque()).append(job)
            self._begin_all_that_may()

    def close(self) -> None:
        """Start no more jobs. Running jobs end soon."""
        with self._changing:
            self._closed = True
            self._jobs.clear()

    def _run(self, first: J) -> None:
        job: J | None = first
        while job is not None:
            who = job.on_behalf_of
            waits = self._wait_budget.limit_waiting(WAIT_BUDGET_SECONDS, self._validating, who, self._cpu_time)
            with self._validating, waits:
                self._validate(job, self._giving_way(job))
            with self._changing:
                self._places.release(who)
                job = self._next()
                self._begin_all_that_may()

    def _begin_all_that_may(self) -> None:
        while (job := self._next()) is not None:
            threading.Thread(target=self._run, args=(job,), name="validate that waits", daemon=True).start()

    def _next(self) -> J | None:
        """Return a job that may start, and take its slot. The job belongs to the client with the fewest threads."""
        who = min(self._jobs, key=self._places.taken_by, default=None)
        if who is None or not self._places.has_slot_for(who):
            return None
        jobs = self._jobs.pop(who)
        job = jobs.popleft()
        if jobs:
            self._jobs[who] = jobs
        self._places.take(who)
        return job

    def _giving_way(self, job: J) -> GiveWay:
        turns = ShortTurns()

        def give_way() -> None:
            if job.is_abandoned or self._closed:
                raise Abandoned
            self._validating.release()
            try:
                turns.give_way()
            finally:
                self._validating.acquire()

        return give_way
