"""Evaluates rules and compiles schemas in another process, within the limits of a request.

A request may use `limits.rule_cpu_seconds` of CPU time for all its records, and `limits.rule_memory_bytes`. A request
that exceeds either limit raises TooCostly. Any other failure of the process is an Outage. No verdict depends on
wall-clock time, because valid data must not appear too costly on a busy machine.
"""

from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from dataclasses import replace
from time import monotonic

from sluicegate.proxy.rules_process.evaluation_thread import EvaluationThread
from sluicegate.proxy.rules_process.limited_evaluations import COMPILE_SLICE_SECONDS, Evaluation
from sluicegate.proxy.rules_process.messages import (
    EvaluationRequest,
    EvaluationResponse,
    EvaluatorKind,
    RulesOperation,
    Specification,
    Subject,
)
from sluicegate.proxy.rules_process.process import EvaluationProcess, Start
from sluicegate.proxy.rules_process.reports import EvaluationOutcome, NoRulesReports, RulesProcessReports
from sluicegate.proxy.rules_process.rule_limits import RuleLimits, TooCostly
from sluicegate.proxy.scheduling.wait_budget import CpuTimeAllowance, VerdictAhead, WaitBudget, WaitNotAllowed
from sluicegate.validation.rules.rule import Outage
from sluicegate.validation.rules.schemas.content import SchemaUnusable

# Wall-clock limits. The first covers the wait before an evaluation. The second covers the evaluation, including the
# start of a process and the compilation of its schemas. Exceeding either limit is an outage.
_TURN_SECONDS = 30.0
_MOST_SECONDS = 240.0
# An evaluation that takes more CPU time than this is costly. Ordinary rules take a hundredth of this time.
_SLICE_SECONDS = 0.05
# The process for costly evaluations ends after this time without an evaluation.
_IDLE_SECONDS = 30.0


class RulesProcess:
    """Evaluates rules for all threads that may wait (WaitBudget).

    The first evaluation, or `prepare`, starts the process.
    """

    def __init__(
        self,
        limits: RuleLimits,
        wait_budget: WaitBudget,
        reports: RulesProcessReports | None = None,
        start: Start = EvaluationProcess,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self.limits = limits
        self._wait_budget = wait_budget
        reports = reports if reports is not None else NoRulesReports()
        self._thread = EvaluationThread(limits, reports, start, now)
        # A separate process for costly evaluations, so that other evaluations wait at most for a slice of CPU time. It
        # runs only while there are costly evaluations.
        self._costly = EvaluationThread(limits, reports, start, now, _IDLE_SECONDS)

    def prepare(self, kinds: frozenset[EvaluatorKind]) -> None:
        """Start the process with the libraries for rules of these kinds, unless it is running."""
        self._thread.start_for(kinds)

    def compile(self, specification: Specification) -> EvaluationResponse:
        """Compile a new schema and return the response, which includes its cost.

        Raises SchemaUnusable, TooCostly, Outage and WaitNotAllowed.
        """
        spent = self._wait_budget.spent
        if spent.compiling_seconds >= self.limits.seconds:
            raise Outage("the request names more new schemas than can be compiled for one request; send it again")
        seconds = self.limits.seconds
        request = EvaluationRequest(
            RulesOperation.COMPILE, specification.number, self._at_once(seconds, COMPILE_SLICE_SECONDS), specification
        )
        try:
            response = self._evaluated(specification, request)
        except TooCostly as error:
            self._check_had_all(error, request, seconds)
            spent.compiling_seconds += seconds
            raise
        spent.compiling_seconds += response.seconds
        return response

    def ask(self, specification: Specification, operation: RulesOperation, subject: Subject) -> str | None:
        """Return the result of applying a schema to data, or a rule to a record. Raises the errors of `compile`."""
        self._wait_budget.require_waiting_allowed()
        spent = self._wait_budget.spent
        left = self.limits.seconds - spent.evaluating_seconds
        if left <= 0:
            raise TooCostly(self.limits.describe_excess(EvaluationOutcome.OVER_SECONDS))
        ahead = spent.ahead.get((specification.number, operation), {})
        verdict = ahead.get(subject)
        if verdict is not None:
            ahead[subject] = replace(verdict, seconds=0.0)  # an equal subject costs nothing
            spent.evaluating_seconds += verdict.seconds
            if isinstance(verdict.words, Exception):
                raise verdict.words
            return verdict.words
        request = EvaluationRequest(operation, specification.number, self._at_once(left), subjects=(subject,))
        try:
            response = self._evaluated(specification, request)
        except TooCostly as error:
            self._check_had_all(error, request, left)
            spent.evaluating_seconds = self.limits.seconds
            raise
        spent.evaluating_seconds += response.seconds
        return response.words

    def look_ahead(self, specification: Specification, operation: RulesOperation, subjects: Iterable[Subject]) -> None:
        """Evaluate the subjects of the next calls of `ask` together, which takes fewer messages to the process.

        Each subject gets the same verdict as in a separate evaluation, and is charged when `ask` is called for it. If
        one subject is too costly, `ask` evaluates the others one by one, so a request takes at most twice its CPU time.

        Raises WaitNotAllowed.
        """
        self._wait_budget.require_waiting_allowed()
        spent = self._wait_budget.spent
        verdicts: dict[Hashable, VerdictAhead] = {}
        spent.ahead[specification.number, operation] = verdicts
        rest = tuple(dict.fromkeys(subjects))
        while rest and (left := self.limits.seconds - spent.evaluating_seconds - spent.uncharged_seconds) > 0:
            request = EvaluationRequest(operation, specification.number, self._at_once(left), subjects=rest)
            evaluation = self._queued(specification, request)
            failure: Exception | None = None
            try:
                self._waited_for(evaluation)
            except (TooCostly, Outage, SchemaUnusable) as error:
                if isinstance(error, TooCostly):
                    self._check_had_all(error, request, left)
                failure = error.with_traceback(None)  # its traceback refers to this frame, and so to all subjects
            for subject, response in zip(rest, evaluation.done, strict=False):
                verdicts[subject] = VerdictAhead(response.words, response.seconds)
            rest = rest[len(evaluation.done) :]
            if failure is not None:
                verdicts[rest[0]] = VerdictAhead(
                    failure, self.limits.seconds if isinstance(failure, TooCostly) else 0.0
                )
                return

    def close(self) -> None:
        """End the processes. Waiting and later requests raise Outage."""
        self._thread.close()
        self._costly.close()

    @property
    def pid(self) -> int | None:
        """The process id, or None if the process is not running."""
        return self._thread.pid

    def _at_once(self, seconds: float, at_most: float = _SLICE_SECONDS) -> float:
        """Return the CPU time (s) that an evaluation may use in this thread.

        `seconds` is the CPU time that it may use in total.
        """
        return min(seconds, at_most) if self._wait_budget.cpu_time is CpuTimeAllowance.SLICE else seconds

    def _check_had_all(self, error: TooCostly, request: EvaluationRequest, seconds: float) -> None:
        """Raise WaitNotAllowed if an evaluation has exceeded only its slice, and not the `seconds` that it may use."""
        if request.seconds < seconds and not error.is_memory:
            raise WaitNotAllowed from error

    def _evaluated(self, specification: Specification, request: EvaluationRequest) -> EvaluationResponse:
        try:
            return self._waited_for(self._queued(specification, request))
        except (TooCostly, Outage, SchemaUnusable) as error:
            # The frames in the traceback refer to the future that keeps the error. This reference cycle would also keep
            # the data that the callers have read.
            raise error.with_traceback(None) from error.__cause__

    def _queued(self, specification: Specification, request: EvaluationRequest) -> Evaluation:
        self._wait_budget.require_waiting_allowed()
        cpu_time = self._wait_budget.cpu_time
        thread = self._costly if cpu_time is CpuTimeAllowance.REST else self._thread
        return thread.add(self._wait_budget.on_behalf_of, specification, request, cpu_time is CpuTimeAllowance.SLICE)

    def _waited_for(self, evaluation: Evaluation) -> EvaluationResponse:
        with suppress(NotInTime):
            return self._wait_budget.wait_uncounted(evaluation.future, _TURN_SECONDS)
        if evaluation.future.cancel():  # the evaluation has not started
            raise Outage(f"the rules process had no time for this within {_TURN_SECONDS:g} s")
        return self._wait_budget.wait_uncounted(evaluation.future, _MOST_SECONDS)
