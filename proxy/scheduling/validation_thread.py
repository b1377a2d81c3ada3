"""The thread that validates what the event loop does not, by turns: whoever was served least lately goes first.

One, whose long work makes room for others in between: a job whose time is up validates what goes before it, in its
place,
and then goes on.
"""

import threading
from collections.abc import Callable
from functools import partial
from time import monotonic

from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import Abandoned
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.scheduling.fair_sharing import Account, FairQueue
from sluicegate.proxy.scheduling.job import Job, settle
from sluicegate.proxy.scheduling.switch_interval import ShortTurns
from sluicegate.proxy.scheduling.wait_budget import MayNotWaitHere, WaitBudget
from sluicegate.validation.in_force import PolicyMemo

# How long one request is validated before others are looked at.
_TURN_SECONDS = 0.01
# Requests that are validated in between, one within the other.
_MOST_NESTED = 8
_END_SECONDS = 2.0

ValidateJob = Callable[[Job, Decompressor, PolicyMemo, Callable[[], None]], Dispatch]
"""Validates the whole of a job; what it is given last, called now and then, lets others go on. Raises Abandoned."""


class ValidationThread:
    """Begins with its first job. What has to be waited for goes `elsewhere`, because here all are validated."""

    def __init__(self, validate: ValidateJob, elsewhere: Callable[[Job], None], wait_budget: WaitBudget) -> None:
        self._validate_whole = validate
        self._elsewhere = elsewhere
        self._wait_budget = wait_budget
        self._turns: FairQueue[Job] = FairQueue()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        # One of each for each job that is validated within another.
        self._decompressors: list[Decompressor] = []
        self._memos: list[PolicyMemo] = []

    def add(self, job: Job) -> None:
        """The newest job; one that comes behind the end is cancelled."""
        with self._changed:
            if self._closed:
                job.future.cancel()
                return
            self._turns.add(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="validate", daemon=True)
                self._thread.start()
            self._changed.notify()

    def abandon(self, job: Job) -> None:
        """Nobody wants it any more: what has not begun never does, what has ends soon."""
        job.is_abandoned = True
        with self._changed:
            if self._turns.remove(job):
                job.future.cancel()

    def close(self) -> None:
        """Begin nothing more, and end what has begun."""
        with self._changed:
            self._closed = True
            self._turns.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)

    def others(self, job: Job, depth: int) -> None:
        """Within the thread: validate what goes before `job`. Raises Abandoned."""
        while (other := self._before(job.account)) is not None:
            self._validate(other, depth + 1)

    def _run(self) -> None:
        with self._wait_budget.never_waiting():
            while self._validate_next():
                pass

    def _validate_next(self) -> bool:
        """Nothing of a request is kept while there is no other; False: there will be none."""
        job = self._next()
        if job is None:
            return False
        self._validate(job, 0)
        return True

    def _next(self) -> Job | None:
        """What is next, once there is something; None when there will be nothing more."""
        with self._changed:
            while not self._turns and not self._closed:
                self._changed.wait()
            return None if self._closed else self._turns.pop(monotonic())

    def _before(self, account: Account) -> Job | None:
        """In the middle of a job: what goes before more work for `account`. Raises Abandoned."""
        if self._closed:
            raise Abandoned
        if not self._turns:
            return None
        with self._changed:
            return self._turns.pop_before(account, monotonic())

    def _validate(self, job: Job, depth: int) -> None:
        if depth == len(self._decompressors):
            self._decompressors.append(Decompressor())
            self._memos.append(PolicyMemo())
        turn = _TurnOf(self, job, depth)
        decompressor, memo = self._decompressors[depth], self._memos[depth]
        try:
            settle(job, partial(self._validate_whole, job, decompressor, memo, turn.give_way))
        except MayNotWaitHere:
            self._elsewhere(job)
        turn.end()
        if depth > 0:
            del self._decompressors[depth:]
            del self._memos[depth:]


class _TurnOf:
    """The time that a job takes, without that of those it makes room for."""

    def __init__(self, thread: ValidationThread, job: Job, depth: int) -> None:
        self._thread = thread
        self._job = job
        self._depth = depth
        self._short_turns = ShortTurns()
        self._since = monotonic()

    def give_way(self) -> None:
        """Raises Abandoned."""
        if self._job.is_abandoned:
            raise Abandoned
        self._short_turns.give_way()
        now = monotonic()
        if now - self._since < _TURN_SECONDS:
            return
        self._job.account.add(now - self._since, now)
        if self._depth < _MOST_NESTED:
            self._thread.others(self._job, self._depth)
        self._since = monotonic()

    def end(self) -> None:
        """The job is done."""
        now = monotonic()
        self._job.account.add(now - self._since, now)
