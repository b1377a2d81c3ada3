"""A thread for sessions' work that would delay the event loop, one job at a time.

How long a job takes is not known in advance. So each job begins as a short one. If it takes longer, it starts again as
a long one. A long job runs waiting short ones in its pauses, so no client waits for another client's long job. Among
equals, the connection with the least recent work comes first.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, thread_time
from typing import Any

from sluicegate.protocol.records.codecs.decompression_budget import OutOfTime
from sluicegate.proxy.scheduling.fair_sharing import Account, FairQueue
from sluicegate.proxy.scheduling.short_turns import ShortTurns

GiveWay = Callable[[], None]
Work = Callable[[GiveWay], Any]
"""Returns a result, and calls its argument between small steps. It may be started again, so it has no side effects."""
Report = Callable[[Any, BaseException | None], None]
"""Receives the result or the error of a piece of work, in the thread."""

_SHORT_SECONDS = 0.02
_BETWEEN_SHORT_SECONDS = 0.01


@dataclass(slots=True, eq=False)
class BackgroundJob:
    """A piece of work for the connection of `account`."""

    work: Work
    account: Account
    report: Report


class BackgroundThread:
    """The thread, which runs while there is work."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._short: FairQueue[BackgroundJob] = FairQueue()
        self._long: FairQueue[BackgroundJob] = FairQueue()
        self._is_running = False

    def add(self, job: BackgroundJob) -> None:
        """Run a job as soon as possible."""
        with self._changing:
            self._short.add(job)
            if self._is_running:
                return
            self._is_running = True
        threading.Thread(target=self._run, name="topic settings", daemon=True).start()

    def _run(self) -> None:
        while (found := self._next()) is not None:
            job, is_long = found
            self._do(job, _LongTurn(self) if is_long else _ShortTurn())
            del job, found  # no request data are kept between jobs

    def _next(self) -> tuple[BackgroundJob, bool] | None:
        with self._changing:
            now = monotonic()
            if (job := self._short.pop(now)) is not None:
                return job, False
            if (job := self._long.pop(now)) is not None:
                return job, True
            self._is_running = False
            return None

    def run_short(self, seconds: float) -> None:
        """Run waiting short jobs for a limited time."""
        until = thread_time() + seconds
        while thread_time() < until:
            with self._changing:
                job = self._short.pop(monotonic())
            if job is None:
                return
            self._do(job, _ShortTurn())

    def _do(self, job: BackgroundJob, turn: "_ShortTurn | _LongTurn") -> None:
        result, error = None, None
        try:
            result = job.work(turn.give_way)
        except OutOfTime:
            with self._changing:
                self._long.add(job)
            return
        except BaseException as raised:  # the session raises it again
            error = raised
        try:
            job.account.add(turn.seconds, monotonic())
            job.report(result, error)
        finally:
            error = None  # the error's traceback refers to this frame


class _ShortTurn:
    def __init__(self) -> None:
        self._turns = ShortTurns()
        self._began = thread_time()

    @property
    def seconds(self) -> float:
        """The CPU time (s) that the job has taken."""
        return thread_time() - self._began

    def give_way(self) -> None:
        """Yield to other threads. Raises OutOfTime if the job is not short."""
        if self.seconds > _SHORT_SECONDS:
            raise OutOfTime
        self._turns.give_way()


class _LongTurn:
    def __init__(self, thread: BackgroundThread) -> None:
        self._thread = thread
        self._turns = ShortTurns()
        self._began = thread_time()
        self._others_at = 0.0

    @property
    def seconds(self) -> float:
        """The CPU time (s) that the job has taken, excluding that of the short jobs within it."""
        return thread_time() - self._began

    def give_way(self) -> None:
        """Yield to other threads, and run short jobs from time to time."""
        self._turns.give_way()
        own = self.seconds
        if own >= self._others_at:
            before = thread_time()
            self._thread.run_short(_SHORT_SECONDS)
            self._began += thread_time() - before
            self._others_at = own + _BETWEEN_SHORT_SECONDS
