"""A destination fails and recovers; a failure that repeats is one failure."""

import pytest

from sluicegate.proxy.reporting.write_health import WriteHealth
from tests.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> WriteHealth:
    return WriteHealth(clock)


def test_successes_alone_are_no_failure(health: WriteHealth) -> None:
    health.succeeded("topic dead")

    assert health.failing() == {}


def test_a_failure_ends_with_a_success_and_six_quiet_seconds(health: WriteHealth, clock: Clock) -> None:
    health.failed("topic dead", "unknown topic")
    assert health.failing() == {"topic dead": "unknown topic"}

    clock.now += 5
    health.succeeded("topic dead")
    assert health.failing() == {"topic dead": "unknown topic"}
    clock.now += 2
    assert health.failing() == {}


def test_a_failure_between_successes_begins_anew(health: WriteHealth, clock: Clock) -> None:
    health.failed("topic dead", "timed out")
    health.succeeded("topic dead")
    clock.now += 5
    health.failed("topic dead", "not authorized")
    clock.now += 5

    assert health.failing() == {"topic dead": "not authorized"}


def test_without_a_success_a_failure_is_forgotten_after_a_minute(health: WriteHealth, clock: Clock) -> None:
    health.failed("topic dead", "unknown topic")
    clock.now += 59
    assert health.failing() == {"topic dead": "unknown topic"}
    clock.now += 2
    assert health.failing() == {}


def test_a_write_without_a_result_fails_before_its_timeout(health: WriteHealth, clock: Clock) -> None:
    number = health.begin("topic dead")
    clock.now += 4
    assert health.failing() == {}
    clock.now += 2
    assert health.failing() == {"topic dead": "no result within 5 s"}

    health.end(number)
    assert health.failing() == {}


def test_a_producer_that_retries_a_failing_write_is_one_failure(health: WriteHealth, clock: Clock) -> None:
    """A write fails after 10 s, and the producer sends the batch again at once; another partition accepts writes."""
    for _ in range(10):
        number = health.begin("topic dead")
        for second in range(10):
            clock.now += 1
            health.succeeded("topic dead")
            assert second < 5 or health.failing() != {}
        health.end(number)
        health.failed("topic dead", "timed out")
        assert health.failing() == {"topic dead": "timed out"}
