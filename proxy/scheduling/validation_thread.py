"""The thread that validates requests which the event loop does not, shorter ones first.

Nothing says beforehand how long a request takes, so each begins on a level for short ones, unless its connection's last
one was long. If it takes more than that level's time, it starts again on the next level. There is one thread: a job
validates the jobs of shorter levels within itself, so a short job waits neither for long ones nor for their number.
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
"""The result of a thread; cancelled if the request was abandoned."""


class Job:
    """A request of the connection of `account`; `future` gets its dispatch.

    `client`: the sender, if the rulebook depends on it. `previous`: previous times of partitions; None: all known ones.
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
        """The key of the client: its address and its confirmed principal."""
        if self.client is None:
            return self.account
        host, _, _ = self.client.address.rpartition(":")
        return host, self.client.principal


def settle(job: Job, validate: Callable[[], Dispatch]) -> None:
    """Set the result of a job. Raises WaitNotAllowed and OutOfTime if it still has to be validated."""
    try:
        dispatch = validate()
    except (WaitNotAllowed, OutOfTime):
        raise
    except Abandoned:
        job.future.cancel()
    except BaseException as error:  # raised again by the future
        job.future.set_exception(error)
    else:
        job.future.set_result(dispatch)
    finally:
        del job  # otherwise its future and the traceback of the error keep each other


@dataclass(frozen=True, slots=True)
class _Level:
    """Jobs that take at most so many `seconds` of CPU time, and keep at most `held_bytes` of one record in memory."""

    seconds: float
    held_bytes: int


MOST_HELD_BYTES: Final = 1 << 20
"""The most of one record that jobs keep in memory, except where there is only one job at a time."""
ANY_SIZE: Final = 1 << 62
# Ordinary requests take less than 30 ms. Each level is ten times as long, so what a job takes on those before its own
# is about a tenth of what it takes on its own.
_LEVELS = (_Level(0.03, MOST_HELD_BYTES), _Level(0.3, MOST_HELD_BYTES), _Level(float("inf"), ANY_SIZE))
# A job lets shorter ones go after each slice of CPU time.
_SLICE_SECONDS = 0.01
# How long it lets them go; a started job is continued after that. It gets a slice, or a fourth of the time they took.
_OTHERS_SECONDS = 0.04
_SHARE = 1 / 4
_END_SECONDS = 2.0

ValidateJob = Callable[[Job, Decompressor, PolicyMemo, Callable[[], None], int], Dispatch]
"""Validates a whole job; the last arguments let others run, and are the bytes of one record that it may keep in memory.
Raises Abandoned, and OutOfTime if a record has more.
"""


class ValidationThread:
    """Starts with its first job. A job that has to wait goes `elsewhere`."""

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
        """Add a job; it is cancelled after the end."""
        last = job.account.last_seconds
        self._add(job, next(level for level, limit in enumerate(_LEVELS) if last <= limit.seconds))

    def abandon(self, job: Job) -> None:
        """Cancel a job: a waiting job never starts, a running one ends soon."""
        job.is_abandoned = True
        with self._changed:
            if any(queue.remove(job) for queue in self._queues):
                job.future.cancel()

    def close(self) -> None:
        """Start no more jobs, and end the running ones."""
        with self._changed:
            self._closed = True
            for queue in self._queues:
                queue.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)

    def check_wanted(self, job: Job) -> None:
        """Raise Abandoned if a job is not wanted any more."""
        if job.is_abandoned or self._closed:
            raise Abandoned

    def validate_waiting(self, level: int) -> float:
        """Validate jobs that wait on a level, for a while; return the CPU time (s)."""
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
                del job  # nothing of a request is kept between jobs

    def _longest_level(self) -> int | None:
        """Wait for a job; return the level of the longest, which validates the shorter ones first. None at the end."""
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
        # What longer jobs need is freed with them.
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
    """The CPU time that a job takes, without that of the jobs within it."""

    def __init__(self, thread: ValidationThread, job: Job, level: int) -> None:
        self._thread = thread
        self._job = job
        self._limit_seconds = _LEVELS[level].seconds
        self._short_turns = ShortTurns()
        self._since = thread_time()
        # For each shorter level, its jobs may go at this CPU time of the job.
        self._others_at = [0.0] * level

    @property
    def seconds(self) -> float:
        """The CPU time (s) of the job so far."""
        return thread_time() - self._since

    def give_way(self) -> None:
        """Yield, and validate shorter jobs after a time slice.

        Raises Abandoned, and OutOfTime after the level's time.
        """
        self._thread.check_wanted(self._job)
        self._short_turns.give_way()
        if self.seconds > self._limit_seconds:
            raise OutOfTime
        self.run_shorter_jobs()

    def run_shorter_jobs(self) -> None:
        """Validate the shorter jobs whose time has come."""
        own = self.seconds
        for level, at in enumerate(self._others_at):
            if own >= at:
                others = self._thread.validate_waiting(level)
                self._since += others
                self._others_at[level] = own + max(_SLICE_SECONDS, others * _SHARE)
