"""The thread that validates requests which the event loop does not; the connection that was served least goes first.

There is one thread. A long job validates more urgent jobs within itself after its time slice, then continues.
"""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import partial
from time import monotonic

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import Abandoned
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.scheduling.fair_sharing import Account, FairQueue
from sluicegate.proxy.scheduling.short_turns import ShortTurns
from sluicegate.proxy.scheduling.wait_budget import MayNotWaitHere, WaitBudget
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
    """Set the result of a job. Raises MayNotWaitHere if it still has to be validated."""
    try:
        dispatch = validate()
    except MayNotWaitHere:
        raise
    except Abandoned:
        job.future.cancel()
    except BaseException as error:  # raised again by the future
        job.future.set_exception(error)
    else:
        job.future.set_result(dispatch)


# The time slice of a request.
_TURN_SECONDS = 0.01
# The nesting limit of jobs.
_MOST_NESTED = 8
_END_SECONDS = 2.0

ValidateJob = Callable[[Job, Decompressor, PolicyMemo, Callable[[], None]], Dispatch]
"""Validates a whole job; its last argument lets others run. Raises Abandoned."""


class ValidationThread:
    """Starts with its first job. A job that has to wait goes `elsewhere`."""

    def __init__(self, validate: ValidateJob, elsewhere: Callable[[Job], None], wait_budget: WaitBudget) -> None:
        self._validate_whole = validate
        self._elsewhere = elsewhere
        self._wait_budget = wait_budget
        self._turns: FairQueue[Job] = FairQueue()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        # One for each nesting level.
        self._decompressors: list[Decompressor] = []
        self._memos: list[PolicyMemo] = []

    def add(self, job: Job) -> None:
        """Add a job; it is cancelled after the end."""
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
        """Cancel a job: a waiting job never starts, a running one ends soon."""
        job.is_abandoned = True
        with self._changed:
            if self._turns.remove(job):
                job.future.cancel()

    def close(self) -> None:
        """Start no more jobs, and end the running ones."""
        with self._changed:
            self._closed = True
            self._turns.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)

    def others(self, job: Job, depth: int) -> None:
        """Validate jobs that go before `job`. Raises Abandoned."""
        while (other := self._before(job.account)) is not None:
            self._validate(other, depth + 1)

    def _run(self) -> None:
        with self._wait_budget.never_waiting():
            while self._validate_next():
                pass

    def _validate_next(self) -> bool:
        """Validate one job; return False at the end. Nothing of a request is kept between jobs."""
        job = self._next()
        if job is None:
            return False
        self._validate(job, 0)
        return True

    def _next(self) -> Job | None:
        """Wait for the next job; None at the end."""
        with self._changed:
            while not self._turns and not self._closed:
                self._changed.wait()
            return None if self._closed else self._turns.pop(monotonic())

    def _before(self, account: Account) -> Job | None:
        """Return a job that goes before more work for `account`. Raises Abandoned."""
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
    """The time that a job takes, without nested jobs."""

    def __init__(self, thread: ValidationThread, job: Job, depth: int) -> None:
        self._thread = thread
        self._job = job
        self._depth = depth
        self._short_turns = ShortTurns()
        self._since = monotonic()

    def give_way(self) -> None:
        """Yield, and validate more urgent jobs after the time slice. Raises Abandoned."""
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
