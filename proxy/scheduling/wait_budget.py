"""Who may wait for what a rule has to look up, and how long: never the thread that validates everybody's requests.

There a validation that would have to wait ends, and is begun anew where it may
(`sluicegate.proxy.scheduling.waiting_threads`).
"""

import threading
from collections.abc import Hashable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from contextlib import contextmanager
from time import monotonic
from typing import TypeVar

T = TypeVar("T")


class MayNotWaitHere(Exception):
    """A validation has to wait for something, and may not where it is."""


class WaitBudgetExceeded(Exception):
    """One request has waited for as long as it may, for all that its records need together."""


class RuleSeconds:
    """The CPU time that the rules process has spent for one request: on its records, and on schemas that were new."""

    def __init__(self) -> None:
        self.evaluating_seconds = 0.0
        self.compiling_seconds = 0.0


class _RequestBudget:
    """What one request may still spend. `step_aside` lets others have what the one who waits does not need."""

    def __init__(self, seconds: float, step_aside: threading.Lock, on_behalf_of: Hashable) -> None:
        self.left = seconds
        self.step_aside = step_aside
        self.on_behalf_of = on_behalf_of
        self.spent = RuleSeconds()


class WaitBudget:
    """Knows of each thread how it waits; a thread of which nothing was said waits as long as is asked."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    @contextmanager
    def never_waiting(self) -> Iterator[None]:
        """Within it, the thread never waits."""
        with self._being(None):
            yield

    @contextmanager
    def waiting_at_most(self, seconds: float, lock: threading.Lock, on_behalf_of: Hashable) -> Iterator[None]:
        """Within it, the thread waits for so long altogether, and lets go of `lock`, which it holds, while it does.

        `on_behalf_of`: the client whose request it scheduler.
        """
        with self._being(_RequestBudget(seconds, lock, on_behalf_of)):
            yield

    @property
    def on_behalf_of(self) -> Hashable:
        """The client for which this thread waits; None where nobody has said."""
        purse: _RequestBudget | None = getattr(self._of_thread, "purse", None)
        return None if purse is None else purse.on_behalf_of

    def check_may_wait(self) -> None:
        """Raises MayNotWaitHere in a thread that never waits."""
        if getattr(self._of_thread, "purse", self) is None:
            raise MayNotWaitHere

    @property
    def spent(self) -> RuleSeconds:
        """Of the request that this thread validates; nothing where nobody has said which that is."""
        purse: _RequestBudget | None = getattr(self._of_thread, "purse", None)
        return RuleSeconds() if purse is None else purse.spent

    def wait_uncounted(self, future: "Future[T]", seconds: float) -> T:
        """Its result, without counting the wait in what the request may wait altogether.

        Raises what the result raises, TimeoutError after `seconds`, and MayNotWaitHere.
        """
        self.check_may_wait()
        purse: _RequestBudget | None = getattr(self._of_thread, "purse", None)
        if purse is None:
            return future.result(seconds)
        purse.step_aside.release()
        try:
            return future.result(seconds)
        finally:
            purse.step_aside.acquire()

    def wait(self, future: "Future[T]", seconds: float) -> T:
        """Its result. Raises what it raises, TimeoutError behind `seconds`, MayNotWaitHere and WaitBudgetExceeded."""
        if future.done() or not hasattr(self._of_thread, "purse"):
            return future.result(seconds)
        purse: _RequestBudget | None = self._of_thread.purse
        if purse is None:
            raise MayNotWaitHere
        began = monotonic()
        purse.step_aside.release()
        try:
            return future.result(min(seconds, max(purse.left, 0)))
        except NotInTime:
            if not future.done() and purse.left < seconds:
                raise WaitBudgetExceeded from None
            raise
        finally:
            purse.left -= monotonic() - began
            purse.step_aside.acquire()

    @contextmanager
    def _being(self, purse: _RequestBudget | None) -> Iterator[None]:
        self._of_thread.purse = purse
        try:
            yield
        finally:
            del self._of_thread.purse
