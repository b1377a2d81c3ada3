"""GET /api/violations validates its parameters and returns the violations."""

import json

import pytest

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.admin.violations_api import ViolationsApi
from sluicegate.proxy.state.topic_description import TopicUnavailable
from sluicegate.proxy.watching.violation_counts import EventSelection
from sluicegate.proxy.watching.violation_history import RecordedViolations, ViolationHistory

NOW, DAY_MS = 1_800_000_000_000, 86_400_000


class OneTopic(ViolationHistory):
    def __init__(self, fault: str | None = None) -> None:
        super().__init__("events", Upstream(bootstrap=(HostPort("127.0.0.1", 1),)))
        self.fault = fault
        self.asked: list[tuple[int, int, EventSelection]] = []

    def read(self, since_ms: int, until_ms: int, wanted: EventSelection) -> RecordedViolations:
        self.asked.append((since_ms, until_ms, wanted))
        if self.fault is not None:
            raise TopicUnavailable(self.fault)
        return RecordedViolations("events", since_ms, until_ms, since_ms, 0, 0, 0, ())


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("", (NOW - 7 * DAY_MS, NOW, EventSelection())),
        ("days=0.5&until_ms=1000000000000", (10**12 - DAY_MS // 2, 10**12, EventSelection())),
        ("topic=a&client=b&owner=c&rule=d", (NOW - 7 * DAY_MS, NOW, EventSelection("a", "b", "c", "d"))),
    ],
)
def test_violations_accept_time_range_and_filter_parameters(query: str, asked: tuple[int, int, EventSelection]) -> None:
    history = OneTopic()

    response = ViolationsApi(history, lambda: NOW).find(query)

    assert history.asked == [asked]
    found = json.loads(response.body)
    assert (found["since_ms"], found["until_ms"], found["groups"]) == (*asked[:2], [])


@pytest.mark.parametrize(
    "query", ["days=0", "days=nan", "days=366", "until_ms=-1", "until_ms=x", "hours=1", "topic", f"until_ms={1 << 60}"]
)
def test_unknown_parameters_of_violations_are_rejected(query: str) -> None:
    assert ViolationsApi(OneTopic(), lambda: NOW).find(query).status == 400


def test_violations_are_unknown_when_topic_is_unreadable() -> None:
    for history, problem in (
        (None, "violations.topic is not configured"),
        (OneTopic("Unknown topic"), "Unknown topic"),
    ):
        response = ViolationsApi(history, lambda: NOW).find("")
        found = json.loads(response.body)
        assert (response.status, found["groups"], found["problem"]) == (200, None, problem)
        assert found["advice"]
