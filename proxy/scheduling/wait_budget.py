"""Limits how long a request's rules may wait for lookups.

The validation thread never waits. A validation that would have to wait there ends, and starts again in a thread that
may wait (`sluicegate.proxy.scheduling.waiting_threads`).
"""

import math
import threading
from collections.abc import Hashable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from time import monotonic
from typing import TypeVar

T = TypeVar("T")


class WaitNotAllowed(Exception):
    """A validation has to wait, or takes longer than this thread allows. It starts again in another thread."""


class CpuTimeAllowance(Enum):
    """How much CPU time of the rules process a thread may wait for in one evaluation."""

    WHOLE = auto()  # the request's total time
    SLICE = auto()  # a slice of the total; after it, the validation starts again in a thread with REST
    REST = auto()  # the request's total time, in a separate process from the one for slices


class WaitBudgetExceeded(Exception):
    """One request has used up its wait budget."""


@dataclass(frozen=True, slots=True)
class VerdictAhead:
    """A rule's verdict on its next question: a fault, None, or an exception to raise.

    `seconds` is the CPU time, which is charged when the question is asked.
    """

    words: str | Exception | None
    seconds: float


class RulesSpending:
    """The CPU time that one request has used in the rules process, for its records and for compiling new schemas.

    `sluicegate.proxy.rules_process` does the accounting. The numbers are kept here because they end with the request,
    as the wait budget does. `ahead` contains verdicts on the next questions, by rule or schema.
    """

    def __init__(self) -> None:
        self.evaluating_seconds = 0.0
        self.compiling_seconds = 0.0
        self.ahead: dict[Hashable, dict[Hashable, VerdictAhead]] = {}

    @property
    def uncharged_seconds(self) -> float:
        """The CPU time of verdicts that are not yet charged."""
        return sum(each.seconds for verdicts in self.ahead.values() for each in verdicts.values())


class _RequestBudget:
    """A request's remaining budget. While the thread waits, it releases `step_aside`."""

    def __init__(
        self, seconds: float, step_aside: threading.Lock, on_behalf_of: Hashable, cpu_time: CpuTimeAllowance
    ) -> None:
        self.left = seconds
        self.cpu_time = cpu_time
        self.step_aside = step_aside
        self.on_behalf_of = on_behalf_of
        self.spent = RulesSpending()


class _Waits(Enum):
    UNLIMITED = auto()
    NEVER = auto()


class _OfThread(threading.local):
    waits: _Waits | _RequestBudget = _Waits.UNLIMITED


class WaitBudget:
    """Manages each thread's wait budget. A thread without a budget may wait without limit."""

    def __init__(self) -> None:
        self._of_thread = _OfThread()

    @contextmanager
    def never_waiting(self) -> Iterator[None]:
        """Return a context manager in which the thread never waits."""
        with self._being(_Waits.NEVER):
            yield

    @contextmanager
    def limit_waiting(
        self,
        seconds: float,
        lock: threading.Lock,
        on_behalf_of: Hashable,
        cpu_time: CpuTimeAllowance = CpuTimeAllowance.WHOLE,
    ) -> Iterator[None]:
        """Return a context manager in which the thread may wait `seconds` in total.

        The thread holds `lock`, and releases it while it waits. `on_behalf_of` is the request's client.
        """
        with self._being(_RequestBudget(seconds, lock, on_behalf_of, cpu_time)):
            yield

    @property
    def on_behalf_of(self) -> Hashable:
        """The client of this thread's request, or None."""
        budget = self._of_thread.waits
        return budget.on_behalf_of if isinstance(budget, _RequestBudget) else None

    @property
    def cpu_time(self) -> CpuTimeAllowance:
        """How much CPU time of the rules process this thread may wait for at once."""
        budget = self._of_thread.waits
        return budget.cpu_time if isinstance(budget, _RequestBudget) else CpuTimeAllowance.WHOLE

    def require_waiting_allowed(self) -> None:
        """Raise WaitNotAllowed in a thread that never waits."""
        if self._of_thread.waits is _Waits.NEVER:
            raise WaitNotAllowed

    @property
    def spent(self) -> RulesSpending:
        """What this thread's request has spent: nothing in a thread without a request."""
        budget = self._of_thread.waits
        return budget.spent if isinstance(budget, _RequestBudget) else RulesSpending()

    def wait_uncounted(self, future: "Future[T]", seconds: float) -> T:
        """Return the future's result without charging the budget.

        Raises the future's error, TimeoutError after `seconds`, and WaitNotAllowed.
        """
        self.require_waiting_allowed()
        try:
            with self._stepping_aside():
                return future.result(seconds)
        finally:
            del future  # breaks the reference cycle of the future and its error's traceback

    def wait(self, future: "Future[T]", seconds: float) -> T:
        """Return the future's result and charge the wait to the budget.

        Raises the future's error, TimeoutError after `seconds`, WaitNotAllowed and WaitBudgetExceeded.
        """
        try:
            return future.result() if future.done() else self._wait_for(future, seconds)
        finally:
            del future  # breaks the reference cycle of the future and its error's traceback

    def _wait_for(self, future: "Future[T]", seconds: float) -> T:
        self.require_waiting_allowed()
        budget = self._of_thread.waits
        left = budget.left if isinstance(budget, _RequestBudget) else math.inf
        began = monotonic()
        try:
            with self._stepping_aside():
                return future.result(min(seconds, max(left, 0)))
        except NotInTime:
            if not future.done() and left < seconds:
                raise WaitBudgetExceeded from None
            raise
        finally:
            if isinstance(budget, _RequestBudget):
                budget.left -= monotonic() - began
            del future  # breaks the reference cycle of the future and its error's traceback

    @contextmanager
    def _stepping_aside(self) -> Iterator[None]:
        """Return a context manager in which the lock of this thread's request is released."""
        budget = self._of_thread.waits
        if not isinstance(budget, _RequestBudget):
            yield
            return
        budget.step_aside.release()
        try:
            yield
        finally:
            budget.step_aside.acquire()

    @contextmanager
    def _being(self, waits: _Waits | _RequestBudget) -> Iterator[None]:
        self._of_thread.waits = waits
        try:
            yield
        finally:
            self._of_thread.waits = _Waits.UNLIMITED
