"""Conditions in the form of the live API, for one proxy and for several."""

from collections.abc import Iterable, Sequence
from typing import TypedDict

from sluicegate.proxy.status.condition import Condition, ServingState
from sluicegate.proxy.status.status import ActiveCondition, state_of


class ConditionState(TypedDict):
    """One active condition (docs/conditions.md).

    `subject` is a broker, a topic, a worker, or empty. `since_ms` is Unix time.
    """

    condition: str
    state: str
    subject: str
    detail: str
    since_ms: int
    advice: str


class StatusState(TypedDict):
    """The state (`serving`, `needs attention`, `not serving`) and the conditions that explain it, most severe first."""

    state: str
    conditions: list[ConditionState]


def status_state(active: Sequence[ActiveCondition]) -> StatusState:
    """Return the status of one proxy."""
    conditions: list[ConditionState] = [
        {
            "condition": each.condition.value,
            "state": each.state.value,
            "subject": each.subject,
            "detail": each.text,
            "since_ms": each.since_ms,
            "advice": each.condition.type.advice,
        }
        for each in active
    ]
    return {"state": state_of(active).value, "conditions": conditions}


def status_of_several(statuses: Iterable[StatusState]) -> StatusState:
    """Return the combined status of several proxies. If their states differ, it is `needs attention`."""
    several = list(statuses)
    states = {status["state"] for status in several}
    worst = ServingState.NEEDS_ATTENTION.value if len(states) > 1 else next(iter(states), ServingState.SERVING.value)
    found: dict[tuple[str, str, str], ConditionState] = {}
    for status in several:
        for each in status["conditions"]:
            key = each["condition"], each["subject"], each["detail"]
            if key not in found or each["since_ms"] < found[key]["since_ms"]:
                found[key] = each
    order = [condition.value for condition in Condition]
    conditions = sorted(found.values(), key=lambda each: (order.index(each["condition"]), each["subject"]))
    return {"state": worst, "conditions": conditions}
