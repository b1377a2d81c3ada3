"""A thread that runs evaluations in the rules process, one at a time, with a fair share for each client.

It starts the process, and replaces it if it ends.
"""

import math
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future

from sluicegate.proxy.rules_process.limited_evaluations import Evaluation, LimitedEvaluations
from sluicegate.proxy.rules_process.messages import (
    EvaluationRequest,
    EvaluationResponse,
    EvaluatorKind,
    Specification,
)
from sluicegate.proxy.rules_process.process import EvaluationProcess, OverBudget, ProcessEnded, Start
from sluicegate.proxy.rules_process.reports import RulesProcessReports
from sluicegate.proxy.rules_process.rule_limits import RuleLimits
from sluicegate.proxy.scheduling.fair_sharing import Account, FairQueue
from sluicegate.validation.rules.rule import Outage

# The wall-clock limit for an evaluation. A longer evaluation is an outage.
_EVALUATION_SECONDS = 60.0
# The process waits this long for the next record of a request. Meanwhile, it serves no client that has recently used at
# least this part of a budget more.
_LINGER_SECONDS = 0.05
_MUCH_MORE = 1 / 4
_MOST_ACCOUNTS = 1000
# The first is the interval between checks of an idle process. A process that ends within the second after its start is
# restarted only when it is needed.
_LOOK_SECONDS = 1.0
_SHORT_LIFE_SECONDS = 10.0
_ENDS = "the rules process has ended with the proxy"


class EvaluationThread:
    """Runs evaluations. The thread and its process start with the first evaluation, or with `start_for`.

    The process ends after `idle_seconds` without an evaluation, and restarts with the next one.
    """

    def __init__(
        self,
        limits: RuleLimits,
        reports: RulesProcessReports,
        start: Start,
        now: Callable[[], float],
        idle_seconds: float = math.inf,
    ) -> None:
        self._limits = limits
        self._reports = reports
        self._start = start
        self._now = now
        self._idle_seconds = idle_seconds
        self._changed = threading.Condition()
        self._turns: FairQueue[Evaluation] = FairQueue()
        self._accounts: dict[Hashable, Account] = {}
        self._kinds: frozenset[EvaluatorKind] = frozenset()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._process: EvaluationProcess | None = None
        self._started_at = 0.0
        self._has_failed_early = False
        self._evaluations = LimitedEvaluations(limits, reports, now, self._ask)
        self._last: tuple[Account, float] | None = None

    def start_for(self, kinds: frozenset[EvaluatorKind]) -> None:
        """Start the process with the libraries for rules of these kinds, unless it is running."""
        with self._changed:
            self._want(kinds)

    def add(
        self, client: Hashable, specification: Specification, request: EvaluationRequest, is_slice: bool = False
    ) -> Evaluation:
        """Add an evaluation to the queue. Raises Outage after `close`."""
        evaluation = Evaluation(client, self._account_of(client), specification, request, Future(), is_slice)
        with self._changed:
            if self._closed:
                raise Outage(_ENDS)
            self._turns.add(evaluation)
            self._want(frozenset({specification.kind}))
        return evaluation

    def close(self) -> None:
        """End the process. Waiting evaluations raise Outage."""
        with self._changed:
            self._closed = True
            if self._process is not None:
                self._process.kill()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    @property
    def waiting(self) -> int:
        """The number of evaluations that wait for their turn."""
        return len(self._turns)

    @property
    def pid(self) -> int | None:
        """The process id, or None if the process is not running."""
        process = self._process
        return None if process is None else process.pid

    def _want(self, kinds: frozenset[EvaluatorKind]) -> None:
        self._kinds |= kinds
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="rules process", daemon=True)
            self._thread.start()
        self._changed.notify()

    def _account_of(self, client: Hashable) -> Account:
        with self._changed:
            account = self._accounts.get(client)
            if account is None:
                if len(self._accounts) >= _MOST_ACCOUNTS:
                    now = self._now()
                    del self._accounts[min(self._accounts, key=lambda each: self._accounts[each].served(now))]
                account = self._accounts[client] = Account()
            return account

    def _run(self) -> None:
        while self._wait():
            evaluation = self._next()
            if evaluation is None:
                self._start_ahead()
            elif evaluation.future.set_running_or_notify_cancel():
                self._evaluations.settle(evaluation)
                self._last = (evaluation.account, self._now())
            del evaluation  # no request data are kept between evaluations
        self._let_go()
        with self._changed:
            while (evaluation := self._turns.pop(self._now())) is not None:
                if evaluation.future.set_running_or_notify_cancel():
                    evaluation.future.set_exception(Outage(_ENDS))

    def _wait(self) -> bool:
        """Wait for work, and check the idle process meanwhile. Return False if this object was closed."""
        while True:
            with self._changed:
                if self._changed.wait_for(self._has_work, None if self._process is None else _LOOK_SECONDS):
                    return not self._closed
            self._look_at_idle_process()

    def _has_work(self) -> bool:
        return bool(self._closed or self._turns or (self._lacks_kinds and not self._has_failed_early))

    def _look_at_idle_process(self) -> None:
        process = self._process
        if process is None:
            return
        if self._last is not None and self._now() - self._last[1] >= self._idle_seconds:
            self._end_idle_process()
            return
        try:
            process.read_unrequested()
        except ProcessEnded as ended:
            self._has_failed_early = self._now() - self._started_at < _SHORT_LIFE_SECONDS
            self._let_go()
            if not self._closed:
                self._reports.replaced(str(ended))

    def _end_idle_process(self) -> None:
        with self._changed:
            if not self._turns:
                self._kinds = frozenset()
                self._let_go()

    def _next(self) -> Evaluation | None:
        """Return the next evaluation, or None if there is none to run now."""
        with self._changed:
            while self._turns and not self._closed:
                now = self._now()
                if self._last is None or now - self._last[1] >= _LINGER_SECONDS:
                    return self._turns.pop(now)
                evaluation = self._turns.pop_unless_heavier(self._last[0], self._limits.seconds * _MUCH_MORE, now)
                if evaluation is not None:
                    return evaluation
                self._changed.wait(_LINGER_SECONDS)
            return None

    @property
    def _lacks_kinds(self) -> bool:
        return not self._kinds <= (frozenset() if self._process is None else self._process.kinds)

    def _ask(self, request: EvaluationRequest) -> Iterator[EvaluationResponse]:
        """Yield the process's responses to a request. Raises OverBudget and ProcessEnded."""
        process = self._started()
        try:
            yield from process.ask(request, _EVALUATION_SECONDS)
            self._has_failed_early = False
        except OverBudget:
            self._evaluations.forget_compiled()
            if process.has_ended:
                self._let_go()
            raise
        except ProcessEnded as ended:
            self._let_go()
            if not self._closed:
                self._reports.replaced(str(ended))
            raise

    def _started(self) -> EvaluationProcess:
        """Return a process with all libraries that are needed now. Raises ProcessEnded."""
        process = self._process
        if process is not None and not self._lacks_kinds:
            return process
        self._let_go()
        with self._changed:
            if self._closed:
                raise ProcessEnded("the proxy ends")
            self._started_at = self._now()
            self._process = self._start(self._kinds, self._limits.memory)
            return self._process

    def _start_ahead(self) -> None:
        """Start a process in advance, so that no request waits for it. An error is raised again for
        the first request.
        """
        try:
            self._started()
        except ProcessEnded as ended:
            self._reports.replaced(str(ended))
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._turns)

    def _let_go(self) -> None:
        with self._changed:
            process, self._process = self._process, None
            self._evaluations.forget_compiled()
        if process is not None:
            process.end()
