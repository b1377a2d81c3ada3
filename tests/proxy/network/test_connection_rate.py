"""How fast new connections are taken, as KIP-612 has brokers do it: too many wait, none is closed."""

import pytest

from sluicegate.proxy.network.connection_rate import TokenBucket


def test_what_a_second_allows_may_come_at_once_and_the_next_waits_for_its_part_of_a_second() -> None:
    bucket = TokenBucket(4)

    assert [bucket.take(100.0) for _ in range(4)] == [0.0] * 4
    assert bucket.take(100.0) == pytest.approx(0.25)
    assert bucket.take(100.0) == pytest.approx(0.5)


def test_a_token_is_there_when_it_is_due_and_not_before() -> None:
    bucket = TokenBucket(4)
    for _ in range(4):
        bucket.take(100.0)

    assert bucket.take(100.249) == pytest.approx(0.001)
    assert bucket.take(100.5) == 0.0  # what was waited for before is paid


def test_however_long_it_is_quiet_no_more_than_a_second_allows_gathers() -> None:
    bucket = TokenBucket(2)
    bucket.take(100.0)

    assert [bucket.take(5_000.0) for _ in range(2)] == [0.0, 0.0]
    assert bucket.take(5_000.0) == pytest.approx(0.5)


def test_a_steady_flow_at_the_limit_never_waits() -> None:
    bucket = TokenBucket(100)

    assert max(bucket.take(100 + number / 100) for number in range(1_000)) == pytest.approx(0.0, abs=1e-9)


def test_time_that_goes_back_gives_nothing_and_takes_nothing() -> None:
    bucket = TokenBucket(1)
    assert bucket.take(100.0) == 0.0

    assert bucket.take(90.0) == pytest.approx(1.0)
