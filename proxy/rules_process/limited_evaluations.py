"""Runs evaluations within their limits.

Each schema or rule is compiled once per process. An evaluation that exceeds its CPU time or memory is not repeated, and
for a while its client is served after all others.
"""

from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Final

from sluicegate.proxy.rules_process.messages import (
    EvaluationRequest,
    EvaluationResponse,
    ResponseOutcome,
    RulesOperation,
    Specification,
)
from sluicegate.proxy.rules_process.process import OverBudget, ProcessEnded
from sluicegate.proxy.rules_process.reports import EvaluationOutcome, RulesProcessReports
from sluicegate.proxy.rules_process.rule_limits import RuleLimits, TooCostly
from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.validation.rules.rule import Outage
from sluicegate.validation.rules.schemas.content import SchemaUnusable

# A client that has exhausted a budget is scheduled as if it had recently used this many budgets.
_PENALTY = 10
COMPILE_SLICE_SECONDS: Final = 0.25
"""A compilation that takes more CPU time than this is costly."""


@dataclass(eq=False, slots=True)
class Evaluation:
    """One evaluation, requested by a client.

    `future` receives the last response, or Outage, SchemaUnusable or TooCostly. `done` contains the responses for the
    evaluation's subjects, up to the first failure. If `is_slice` is true, the evaluation may take only a slice of CPU
    time, and exceeding the slice violates no limit.
    """

    client: Hashable
    account: Account
    specification: Specification
    request: EvaluationRequest
    future: "Future[EvaluationResponse]"
    is_slice: bool = False
    done: list[EvaluationResponse] = field(default_factory=list)


class LimitedEvaluations:
    """Runs evaluations in the process that `ask` starts or uses.

    `ask` yields the responses to a request, and raises OverBudget and ProcessEnded.
    """

    def __init__(
        self,
        limits: RuleLimits,
        reports: RulesProcessReports,
        now: Callable[[], float],
        ask: Callable[[EvaluationRequest], Iterator[EvaluationResponse]],
    ) -> None:
        self._limits = limits
        self._reports = reports
        self._now = now
        self._ask = ask
        self._compiled: set[int] = set()

    def forget_compiled(self) -> None:
        """Forget which specifications were compiled, because the process has ended or was reset."""
        self._compiled.clear()

    def settle(self, evaluation: Evaluation) -> None:
        """Run an evaluation and set its future's result."""
        try:
            response = self._responded(evaluation)
        except OverBudget as over:
            how = self._exhausted(evaluation, over)
            evaluation.future.set_exception(TooCostly(self._limits.describe_excess(how), over.is_memory))
            return
        except SchemaUnusable as error:
            evaluation.future.set_exception(error)
            return
        except ProcessEnded as ended:
            self._reports.evaluated(EvaluationOutcome.OUTAGE.value)
            evaluation.future.set_exception(Outage(f"the rules process is not available: {ended}"))
            return
        except Exception as error:  # a bug in the proxy, which the waiting thread reports
            evaluation.future.set_exception(error)
            return
        is_of_a_subject = evaluation.request.operation is not RulesOperation.COMPILE
        # each finished subject is charged separately
        if not (is_of_a_subject and response.outcome is ResponseOutcome.DONE):
            self._charge(evaluation, response)
        self._set_result(evaluation, response)

    def _charge(self, evaluation: Evaluation, response: EvaluationResponse) -> None:
        evaluation.account.add(response.seconds, self._now())
        is_done = response.outcome in (ResponseOutcome.DONE, ResponseOutcome.UNUSABLE)
        self._reports.evaluated((EvaluationOutcome.DONE if is_done else EvaluationOutcome.OUTAGE).value)

    def _set_result(self, evaluation: Evaluation, response: EvaluationResponse) -> None:
        words = response.words or ""
        if response.outcome is ResponseOutcome.DONE:
            evaluation.future.set_result(response)
        elif response.outcome is ResponseOutcome.UNUSABLE:
            evaluation.future.set_exception(SchemaUnusable(words))
        elif response.outcome is ResponseOutcome.OUTAGE:
            evaluation.future.set_exception(Outage(words))
        elif _is_permanent(evaluation):  # the same data would fail again
            evaluation.future.set_exception(SchemaUnusable(f"the evaluation failed ({words})"))
        else:
            evaluation.future.set_exception(Outage(f"the evaluation failed in the rules process: {words}"))

    def _responded(self, evaluation: Evaluation) -> EvaluationResponse:
        """Return the response to an evaluation.

        If earlier requests left too little memory, repeat the remaining subjects once in a new process. Raises
        OverBudget, SchemaUnusable and ProcessEnded.
        """
        has_others = bool(self._compiled - {evaluation.specification.number})
        try:
            return self._responded_once(evaluation)
        except OverBudget as over:
            if not (over.is_memory and has_others):
                raise
        return self._responded_once(evaluation)

    def _responded_once(self, evaluation: Evaluation) -> EvaluationResponse:
        request, specification = evaluation.request, evaluation.specification
        request = replace(request, subjects=request.subjects[len(evaluation.done) :])
        if request.operation is RulesOperation.COMPILE:
            return self._compiled_by(request)
        if specification.number in self._compiled:
            response = self._last_response(evaluation, request)
            if response.outcome is not ResponseOutcome.UNKNOWN:
                return response
        seconds = COMPILE_SLICE_SECONDS if evaluation.is_slice else self._limits.seconds
        compiling = EvaluationRequest(RulesOperation.COMPILE, specification.number, seconds, specification)
        try:
            compiled = self._compiled_by(compiling)
        except OverBudget as over:
            if evaluation.is_slice and not over.is_memory:
                raise
            how = self._exhausted(evaluation, over)
            raise SchemaUnusable(f"compiling the schema takes {self._limits.describe_excess(how)}") from None
        return self._last_response(evaluation, request) if compiled.outcome is ResponseOutcome.DONE else compiled

    def _last_response(self, evaluation: Evaluation, request: EvaluationRequest) -> EvaluationResponse:
        """Evaluate the remaining subjects, record and charge each of them, and return the last response."""
        for response in self._ask(request):
            if response.outcome is ResponseOutcome.DONE:
                evaluation.done.append(response)
                self._charge(evaluation, response)
        return response

    def _compiled_by(self, request: EvaluationRequest) -> EvaluationResponse:
        (response,) = self._ask(request)
        if response.outcome is ResponseOutcome.DONE:
            self._compiled.add(request.number)
        return response

    def _exhausted(self, evaluation: Evaluation, over: OverBudget) -> EvaluationOutcome:
        how = EvaluationOutcome.OVER_MEMORY if over.is_memory else EvaluationOutcome.OVER_SECONDS
        evaluation.account.add(_PENALTY * self._limits.seconds, self._now())
        if evaluation.is_slice and not over.is_memory:
            return how
        self._reports.evaluated(how.value)
        self._reports.limit_exceeded(evaluation.client, how.value, evaluation.specification.kind.value)
        return how


def _is_permanent(evaluation: Evaluation) -> bool:
    """Return whether the same data would fail again, because a library or a custom rule fails on them.

    A failure to compile comes from the folder for temporary files, so it is not permanent.
    """
    return evaluation.request.operation is not RulesOperation.COMPILE
