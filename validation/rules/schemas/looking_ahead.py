"""Evaluates several records together, each with its own schema (`SupportsLookAhead`)."""

from collections.abc import Iterable
from typing import TypeVar

from sluicegate.validation.rules.rule import StepBudget, SupportsLookAhead

Subject = TypeVar("Subject")


def look_ahead(known: Iterable[tuple[object, Subject] | None], budget: StepBudget) -> None:
    """Let each schema, or expression over a schema, look ahead at its own data or records. Skips None."""
    by_schema: dict[object, list[Subject]] = {}
    for one in known:
        if one is not None:
            by_schema.setdefault(one[0], []).append(one[1])
    for schema, subjects in by_schema.items():
        if isinstance(schema, SupportsLookAhead):
            schema.look_ahead(subjects, budget)
