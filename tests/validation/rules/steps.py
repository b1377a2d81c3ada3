"""Counts the steps that a rule or a schema spends."""

from collections.abc import Callable
from contextlib import suppress

from sluicegate.validation.rules.cel.variables import NotOfSchema
from sluicegate.validation.rules.rule import UNBOUNDED, LimitedSteps, RuledRecord, SchemaError, StepBudget, TooManySteps
from sluicegate.validation.rules.schemas.json_form import NoJsonForm


def steps_of(evaluate: Callable[..., object], subject: bytes | RuledRecord) -> int:
    """Return the steps of an evaluation, which ends when they exceed the limit of this process."""
    budget = LimitedSteps(StepBudget())
    with suppress(TooManySteps, SchemaError, NotOfSchema, NoJsonForm):
        if isinstance(subject, RuledRecord):
            subject.budget = budget
            evaluate(subject)
        else:
            evaluate(subject, budget)
    if isinstance(subject, RuledRecord):
        subject.budget = StepBudget()
    return min(budget.spent, UNBOUNDED)
