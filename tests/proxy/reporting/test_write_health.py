"""A destination fails and recovers; a failure that repeats counts as one failure."""

import pytest

from sluicegate.proxy.reporting.waiting_clients import WaitingNames
from sluicegate.proxy.reporting.write_health import WriteHealth
from tests.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> WriteHealth:
    return WriteHealth(clock)


def failure_reasons(health: WriteHealth) -> dict[str, str]:
    return {destination: failing.reason for destination, failing in health.failing().items()}


def test_destination_is_not_failing_after_success(health: WriteHealth) -> None:
    health.succeeded("topic dead")

    assert health.failing() == {}


def test_failure_ends_after_success_and_six_seconds_without_failure(health: WriteHealth, clock: Clock) -> None:
    health.failed("topic dead", "unknown topic")
    assert failure_reasons(health) == {"topic dead": "unknown topic"}

    clock.now += 5
    health.succeeded("topic dead")
    assert failure_reasons(health) == {"topic dead": "unknown topic"}
    clock.now += 2
    assert health.failing() == {}


def test_failure_after_success_is_reported_with_new_reason(health: WriteHealth, clock: Clock) -> None:
    health.failed("topic dead", "timed out")
    health.succeeded("topic dead")
    clock.now += 5
    health.failed("topic dead", "not authorized")
    clock.now += 5

    assert failure_reasons(health) == {"topic dead": "not authorized"}


def test_failure_expires_after_a_minute_without_success(health: WriteHealth, clock: Clock) -> None:
    health.failed("topic dead", "unknown topic")
    clock.now += 59
    assert failure_reasons(health) == {"topic dead": "unknown topic"}
    clock.now += 2
    assert health.failing() == {}


def test_write_without_result_is_failing_after_five_seconds(health: WriteHealth, clock: Clock) -> None:
    number = health.begin("topic dead")
    clock.now += 4
    assert health.failing() == {}
    clock.now += 2
    assert failure_reasons(health) == {"topic dead": "no result within 5 s"}

    health.end(number)
    assert health.failing() == {}


def test_retried_failing_write_is_one_continuous_failure(health: WriteHealth, clock: Clock) -> None:
    """Each write fails after 10 s, and the producer retries at once. Writes to another partition succeed meanwhile."""
    for _ in range(10):
        number = health.begin("topic dead")
        for second in range(10):
            clock.now += 1
            health.succeeded("topic dead")
            assert second < 5 or health.failing() != {}
        health.end(number)
        health.failed("topic dead", "timed out")
        assert failure_reasons(health) == {"topic dead": "timed out"}


def test_failure_names_waiting_clients_until_their_write_succeeds(health: WriteHealth, clock: Clock) -> None:
    billing = WaitingNames(frozenset({"billing from 10.0.0.1"}), frozenset({"orders"}))
    shop = WaitingNames(frozenset({"shop from 10.0.0.2"}), frozenset({"refunds"}))
    health.failed("topic dead", "unknown topic", billing)
    health.failed("topic dead", "unknown topic", shop)
    assert health.failing()["topic dead"].waiting == billing | shop

    health.succeeded("topic dead", billing)
    clock.now += 1
    health.failed("topic dead", "unknown topic", shop)
    assert health.failing()["topic dead"].waiting == shop


def test_failure_names_clients_of_write_without_result(health: WriteHealth, clock: Clock) -> None:
    billing = WaitingNames(frozenset({"billing from 10.0.0.1"}), frozenset({"orders"}))
    health.begin("topic dead", billing)
    clock.now += 6

    (failing,) = health.failing().values()
    assert (failing.waiting, failing.failed_at) == (billing, clock.now)
