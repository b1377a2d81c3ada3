"""Enforcement is suspended for the right topics and time, and violations are reported meanwhile."""

import pytest

from sluicegate.proxy.reload.enforcement import MAX_SUSPENSIONS, Enforcement, TooManySuspensions
from sluicegate.proxy.state.suspension import Suspension, SuspensionScope
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from sluicegate.validation.rulebook import NOTHING_SUSPENDED, SuspendedTopics

NOON_MS = 1_795_780_800_000  # 2026-11-27T12:00:00Z


class Stage:
    """One proxy's enforcement with a clock that the test sets."""

    def __init__(self) -> None:
        self.now_ms = NOON_MS
        self.in_force = NOTHING_SUSPENDED
        self.status = Status(now_ms=lambda: self.now_ms)
        self.status.end(Condition.STARTING)
        self.enforcement = Enforcement(self.status, self.apply, lambda: self.now_ms)

    def apply(self, suspended: SuspendedTopics) -> None:
        self.in_force = suspended

    def conditions(self) -> list[str]:
        return [each.detail for each in self.status.active()]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_topic_is_suspended_with_its_reason_until_its_end_time(stage: Stage) -> None:
    stage.enforcement.suspend("orders", "incident 7", 1800)

    assert stage.in_force == SuspendedTopics(topics=frozenset({"orders"}))
    expected = "enforcement is suspended for orders until 2026-11-27T12:30:00Z: incident 7"
    assert stage.conditions() == [expected]
    assert stage.enforcement.lines_about("orders") == [f"  {expected}"]
    assert stage.enforcement.lines_about("payments") == []

    stage.now_ms += 1_799_999
    stage.enforcement.end_due()
    assert stage.in_force.covers("orders")

    stage.now_ms += 1
    stage.enforcement.end_due()
    assert stage.in_force == NOTHING_SUSPENDED
    assert stage.conditions() == []


def test_resuming_all_topics_also_resumes_individually_suspended_topics(stage: Stage) -> None:
    stage.enforcement.suspend("orders", "first", 60)
    stage.enforcement.suspend(None, "second", 60)

    assert stage.in_force.covers("anything")
    assert len(stage.conditions()) == len(stage.enforcement.lines_about("orders")) == 2

    assert stage.enforcement.resume(None)
    assert stage.in_force == NOTHING_SUSPENDED
    assert stage.conditions() == []


def test_resuming_a_topic_leaves_the_others_suspended(stage: Stage) -> None:
    stage.enforcement.suspend("orders", "first", 60)
    stage.enforcement.suspend("payments", "second", 60)

    assert stage.enforcement.resume("orders")
    assert not stage.enforcement.resume("orders")
    assert stage.in_force == SuspendedTopics(topics=frozenset({"payments"}))


def test_a_repeated_suspension_replaces_the_end_time_and_keeps_the_condition(stage: Stage) -> None:
    stage.enforcement.suspend("orders", "first", 60)
    since = stage.status.active()[0].since_ms
    stage.now_ms += 30_000
    stage.enforcement.suspend("orders", "longer", 60)

    assert [each.until_ms for each in stage.enforcement.suspensions] == [NOON_MS + 90_000]
    (condition,) = stage.status.active()
    assert condition.since_ms == since
    assert condition.detail.endswith("longer")


def test_the_number_of_suspensions_is_bounded(stage: Stage) -> None:
    for number in range(MAX_SUSPENSIONS):
        stage.enforcement.suspend(f"topic-{number}", "too many", 60)

    with pytest.raises(TooManySuspensions):
        stage.enforcement.suspend("one-more", "too many", 60)
    assert stage.enforcement.suspend("topic-0", "again", 60)


def cluster_suspension(topic: str | None, seconds: int) -> Suspension:
    return Suspension(
        topic, "agreed", NOON_MS + seconds * 1000, SuspensionScope.CLUSTER, "an administrator at 10.1.2.3"
    )


def test_adopted_cluster_suspensions_replace_earlier_ones_and_keep_local_ones(stage: Stage) -> None:
    stage.enforcement.suspend("orders", "mine", 60)
    stage.enforcement.adopt([cluster_suspension("orders", 90), cluster_suspension("payments", 90)])
    assert stage.in_force == SuspendedTopics(topics=frozenset({"orders", "payments"}))
    assert len(stage.enforcement.lines_about("orders")) == 2
    assert [("mine" in text, "all proxies" in text) for text in stage.conditions()] == [(True, True), (False, True)]

    stage.enforcement.adopt([])
    assert stage.in_force == SuspendedTopics(topics=frozenset({"orders"}))
    assert stage.enforcement.resume("orders")
    assert stage.in_force == NOTHING_SUSPENDED


def test_cluster_suspensions_end_at_their_end_time(stage: Stage) -> None:
    stage.enforcement.adopt([cluster_suspension("orders", 90), cluster_suspension("late", 0)])
    assert stage.in_force == SuspendedTopics(topics=frozenset({"orders"}))

    stage.now_ms += 90_000
    stage.enforcement.end_due()
    assert stage.in_force == NOTHING_SUSPENDED
    assert stage.conditions() == []
