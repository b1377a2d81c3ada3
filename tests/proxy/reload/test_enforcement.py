"""Enforcement is suspended for the right topics and time, and violations are reported meanwhile."""

import pytest

from sluicegate.proxy.reload.enforcement import MAX_SUSPENSIONS, Enforcement, TooManySuspensions
from sluicegate.proxy.state.suspension import Suspension, SuspensionScope
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from sluicegate.validation.rulebook import NOTHING_SUSPENDED, SuspendedTopics

NOON_MS = 1_795_780_800_000  # 2026-11-27T12:00:00Z


class EnforcementHarness:
    """One proxy's enforcement with a clock that the test sets."""

    def __init__(self) -> None:
        self.now_ms = NOON_MS
        self.in_force = NOTHING_SUSPENDED
        self.status = Status(now_ms=lambda: self.now_ms)
        self.status.end(Condition.STARTING)
        self.enforcement = Enforcement(self.status, self.apply, lambda: self.now_ms)

    def apply(self, suspended: SuspendedTopics) -> None:
        self.in_force = suspended

    def active_condition_details(self) -> list[str]:
        return [each.detail for each in self.status.active()]


@pytest.fixture
def harness() -> EnforcementHarness:
    return EnforcementHarness()


def test_a_topic_is_suspended_with_its_reason_until_its_end_time(harness: EnforcementHarness) -> None:
    harness.enforcement.suspend("orders", "incident 7", 1800)

    assert harness.in_force == SuspendedTopics(topics=frozenset({"orders"}))
    expected = "enforcement is suspended for orders until 2026-11-27T12:30:00Z: incident 7"
    assert harness.active_condition_details() == [expected]
    assert harness.enforcement.suspension_lines("orders") == [f"  {expected}"]
    assert harness.enforcement.suspension_lines("payments") == []

    harness.now_ms += 1_799_999
    harness.enforcement.end_expired()
    assert harness.in_force.covers("orders")

    harness.now_ms += 1
    harness.enforcement.end_expired()
    assert harness.in_force == NOTHING_SUSPENDED
    assert harness.active_condition_details() == []


def test_resuming_all_topics_also_resumes_individually_suspended_topics(harness: EnforcementHarness) -> None:
    harness.enforcement.suspend("orders", "first", 60)
    harness.enforcement.suspend(None, "second", 60)

    assert harness.in_force.covers("anything")
    assert len(harness.active_condition_details()) == len(harness.enforcement.suspension_lines("orders")) == 2

    assert harness.enforcement.resume(None)
    assert harness.in_force == NOTHING_SUSPENDED
    assert harness.active_condition_details() == []


def test_resuming_a_topic_leaves_the_others_suspended(harness: EnforcementHarness) -> None:
    harness.enforcement.suspend("orders", "first", 60)
    harness.enforcement.suspend("payments", "second", 60)

    assert harness.enforcement.resume("orders")
    assert not harness.enforcement.resume("orders")
    assert harness.in_force == SuspendedTopics(topics=frozenset({"payments"}))


def test_a_repeated_suspension_replaces_the_end_time_and_keeps_the_condition(harness: EnforcementHarness) -> None:
    harness.enforcement.suspend("orders", "first", 60)
    since = harness.status.active()[0].since_ms
    harness.now_ms += 30_000
    harness.enforcement.suspend("orders", "longer", 60)

    assert [each.until_ms for each in harness.enforcement.suspensions] == [NOON_MS + 90_000]
    (condition,) = harness.status.active()
    assert condition.since_ms == since
    assert condition.detail.endswith("longer")


def test_the_number_of_suspensions_is_bounded(harness: EnforcementHarness) -> None:
    for number in range(MAX_SUSPENSIONS):
        harness.enforcement.suspend(f"topic-{number}", "too many", 60)

    with pytest.raises(TooManySuspensions):
        harness.enforcement.suspend("one-more", "too many", 60)
    assert harness.enforcement.suspend("topic-0", "again", 60)


def cluster_suspension(topic: str | None, seconds: int) -> Suspension:
    return Suspension(
        topic, "agreed", NOON_MS + seconds * 1000, SuspensionScope.CLUSTER, "an administrator at 10.1.2.3"
    )


def test_adopted_cluster_suspensions_replace_earlier_ones_and_keep_local_ones(harness: EnforcementHarness) -> None:
    harness.enforcement.suspend("orders", "mine", 60)
    harness.enforcement.adopt([cluster_suspension("orders", 90), cluster_suspension("payments", 90)])
    assert harness.in_force == SuspendedTopics(topics=frozenset({"orders", "payments"}))
    assert len(harness.enforcement.suspension_lines("orders")) == 2
    assert [("mine" in text, "all proxies" in text) for text in harness.active_condition_details()] == [
        (True, True),
        (False, True),
    ]

    harness.enforcement.adopt([])
    assert harness.in_force == SuspendedTopics(topics=frozenset({"orders"}))
    assert harness.enforcement.resume("orders")
    assert harness.in_force == NOTHING_SUSPENDED


def test_cluster_suspensions_end_at_their_end_time(harness: EnforcementHarness) -> None:
    harness.enforcement.adopt([cluster_suspension("orders", 90), cluster_suspension("late", 0)])
    assert harness.in_force == SuspendedTopics(topics=frozenset({"orders"}))

    harness.now_ms += 90_000
    harness.enforcement.end_expired()
    assert harness.in_force == NOTHING_SUSPENDED
    assert harness.active_condition_details() == []
