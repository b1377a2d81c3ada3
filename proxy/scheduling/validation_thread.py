"""The thread that validates the requests that the event loop does not validate, shorter requests first.

How long a request takes is not known in advance. So each request begins on a level for short requests, unless the
previous request on its connection was long. If it takes longer than its level allows, it starts again on the next
level. There is only one thread. A long job runs waiting jobs of shorter levels in its pauses, so a short job waits
neither for a long job nor for many of them.
"""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from time import monotonic, thread_time
from typing import Final

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import Abandoned, OutOfTime
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.scheduling.fair_sharing import Account, FairQueue
from sluicegate.proxy.scheduling.short_turns import ShortTurns
from sluicegate.proxy.scheduling.wait_budget import WaitBudget, WaitNotAllowed
from sluicegate.validation.dispositions.fixes import Previous
from sluicegate.validation.in_force import PolicyMemo
from sluicegate.validation.rules.rule import Client

Validation = Future[Dispatch]
"""The result of a validation in a thread. It is cancelled if the request is abandoned."""


class Job:
    """A request on the connection of `account`. `future` receives its dispatch.

    `client` is the sender, if the rulebook depends on it. `previous` contains the partitions' previous times. If it is
    None, all known times are used.
    """

    def __init__(
        self, request: ProduceRequest, account: Account, client: Client | None, previous: Previous | None = None
    ) -> None:
        self.request = request
        self.previous = previous
        self.client = client
        self.account = account
        self.future: Validation = Future()
        self.is_abandoned = False

    @property
    def on_behalf_of(self) -> Hashable:
        """The key that identifies the client, made of its address and its verified principal."""
        if self.client is None:
            return self.account
        host, _, _ = self.client.address.rpartition(":")
        return host, self.client.principal


def settle(job: Job, validate: Callable[[], Dispatch]) -> None:
    """Set a job's result. Raises WaitNotAllowed and OutOfTime if the job must be validated elsewhere."""
    try:
        dispatch = validate()
    except (WaitNotAllowed, OutOfTime):
        raise
    except Abandoned:
        job.future.cancel()
    except BaseException as error:  # the future raises it again
        job.future.set_exception(error)
    else:
        job.future.set_result(dispatch)
    finally:
        del job  # breaks the reference cycle of the future and the error's traceback


@dataclass(frozen=True, slots=True)
class _Level:
    """Jobs that take at most `seconds` of CPU time, and keep at most `held_bytes` of one record in memory."""

    seconds: float
    held_bytes: int


MOST_HELD_BYTES: Final = 1 << 20
"""The number of bytes of one record that a job may keep in memory, except where only one job runs at a time."""
ANY_SIZE: Final = 1 << 62
# Ordinary requests take less than 30 ms. Each level is ten times as long as the previous one, so a job wastes about a
# tenth of its own time on shorter levels.
_LEVELS = (_Level(0.03, MOST_HELD_BYTES), _Level(0.3, MOST_HELD_BYTES), _Level(float("inf"), ANY_SIZE))
# After each slice of this CPU time, a job lets shorter jobs run.
_SLICE_SECONDS = 0.01
# A job lets shorter jobs run for this time. After that, a job that has started continues for a slice, or for a fourth
# of the time that the shorter jobs took.
_OTHERS_SECONDS = 0.04
_SHARE = 1 / 4
_END_SECONDS = 2.0

ValidateJob = Callable[[Job, Decompressor, PolicyMemo, Callable[[], None], int], Dispatch]
"""Validates a whole job.

The fourth argument lets other jobs run. The last one is the number of bytes of one record that the job may keep in
memory. Raises Abandoned, and OutOfTime if a record is larger.
"""


class ValidationThread:
    """The thread, which starts with its first job. A job that has to wait is passed to `elsewhere`."""

    def __init__(self, validate: ValidateJob, elsewhere: Callable[[Job], None], wait_budget: WaitBudget) -> None:
        self._validate_whole = validate
        self._elsewhere = elsewhere
        self._wait_budget = wait_budget
        self._queues: tuple[FairQueue[Job], ...] = tuple(FairQueue() for _ in _LEVELS)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._decompressor = Decompressor()
        self._memos = tuple(PolicyMemo() for _ in _LEVELS)

    def add(self, job: Job) -> None:
        """Add a job. After `close` the job is cancelled."""
        last = job.account.last_seconds
        self._add(job, next(level for level, limit in enumerate(_LEVELS) if last <= limit.seconds))

    def abandon(self, job: Job) -> None:
        """Cancel a job. A waiting job never starts, and a running job ends soon."""
        job.is_abandoned = True
        with self._changed:
            if any(queue.remove(job) for queue in self._queues):
                job.future.cancel()

    def close(self) -> None:
        """Start no more jobs, and end those that are running."""
        with self._changed:
            self._closed = True
            for queue in self._queues:
                queue.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)

    def check_wanted(self, job: Job) -> None:
        """Raise Abandoned if the job is no longer wanted."""
        if job.is_abandoned or self._closed:
            raise Abandoned

    def validate_waiting(self, level: int) -> float:
        """Validate jobs that wait on a level, for a limited time. Return the CPU time (s) that they took."""
        if not self._queues[level]:
            return 0.0
        began = thread_time()
        seconds = 0.0
        while seconds < _OTHERS_SECONDS and (job := self._pop(level)) is not None:
            self._validate(job, level)
            seconds = thread_time() - began
        return seconds

    def _add(self, job: Job, level: int) -> None:
        with self._changed:
            if self._closed:
                job.future.cancel()
                return
            self._queues[level].add(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="validate", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        with self._wait_budget.never_waiting():
            while (level := self._longest_level()) is not None:
                if (job := self._pop(level)) is not None:
                    self._validate(job, level)
                del job  # no request data are kept between jobs

    def _longest_level(self) -> int | None:
        """Wait for a job. Return the longest level that has one, or None at the end.

        The job on that level runs the shorter ones first.
        """
        with self._changed:
            while not self._closed:
                for level in reversed(range(len(_LEVELS))):
                    if self._queues[level]:
                        return level
                self._changed.wait()
            return None

    def _pop(self, level: int) -> Job | None:
        with self._changed:
            return self._queues[level].pop(monotonic())

    def _validate(self, job: Job, level: int) -> None:
        # the memory of a longer job's decompressor is freed with the job
        decompressor = self._decompressor if level == 0 else Decompressor()
        turn = _Turn(self, job, level)
        try:
            turn.run_shorter_jobs()
            validate = partial(
                self._validate_whole, job, decompressor, self._memos[level], turn.give_way, _LEVELS[level].held_bytes
            )
            settle(job, validate)
        except WaitNotAllowed:
            self._elsewhere(job)
        except OutOfTime:
            self._add(job, level + 1)
        job.account.add(turn.seconds, monotonic())


class _Turn:
    """Measures a job's CPU time, excluding that of the jobs that run within it."""

    def __init__(self, thread: ValidationThread, job: Job, level: int) -> None:
        self._thread = thread
        self._job = job
        self._limit_seconds = _LEVELS[level].seconds
        self._short_turns = ShortTurns()
        self._since = thread_time()
        # this job's CPU time at which the jobs of each shorter level may run next
        self._others_at = [0.0] * level

    @property
    def seconds(self) -> float:
        """The CPU time (s) that the job has taken."""
        return thread_time() - self._since

    def give_way(self) -> None:
        """Yield to other threads, and validate shorter jobs after each time slice.

        Raises Abandoned, and OutOfTime after the level's time.
        """
        self._thread.check_wanted(self._job)
        self._short_turns.give_way()
        if self.seconds > self._limit_seconds:
            raise OutOfTime
        self.run_shorter_jobs()

    def run_shorter_jobs(self) -> None:
        """Validate the shorter jobs that may run now."""
        own = self.seconds
        for level, at in enumerate(self._others_at):
            if own >= at:
                others = self._thread.validate_waiting(level)
                self._since += others
                self._others_at[level] = own + max(_SLICE_SECONDS, others * _SHARE)
