"""The token bucket fills and empties correctly at times that the test sets."""

import pytest

from sluicegate.proxy.session.quotas.token_bucket import MOST_OWED_SECONDS, TokenBucket


def test_full_bucket_allows_a_burst_of_one_second() -> None:
    bucket = TokenBucket(100, now=5.0)

    assert bucket.take(100, now=5.0) == 0
    assert bucket.take(50, now=5.0) == pytest.approx(0.5)
    assert bucket.take(0, now=5.25) == pytest.approx(0.25)
    assert bucket.take(0, now=5.5) == 0


def test_bucket_accumulates_at_most_one_second_of_tokens() -> None:
    bucket = TokenBucket(100, now=0.0)

    assert bucket.take(150, now=1_000_000.0) == pytest.approx(0.5)


def test_connections_within_the_rate_are_not_delayed() -> None:
    bucket = TokenBucket(10, now=0.0)

    assert [bucket.take(1, now=tenth / 10) for tenth in range(1000)] == [0] * 1000


def test_waiting_for_the_returned_delays_yields_exactly_the_rate() -> None:
    bucket, now, taken = TokenBucket(1000, now=0.0), 0.0, 0

    while now < 60:
        taken += 700
        now += bucket.take(700, now)

    assert taken == pytest.approx(61 * 1000, rel=0.02)


def test_returned_delay_of_a_bucket_is_bounded() -> None:
    bucket = TokenBucket(1, now=0.0)

    assert bucket.take(1 << 40, now=0.0) == MOST_OWED_SECONDS
    assert bucket.take(0, now=MOST_OWED_SECONDS) == 0


def test_a_clock_that_goes_back_adds_no_tokens() -> None:
    bucket = TokenBucket(1, now=100.0)
    assert bucket.take(1, now=100.0) == 0

    assert bucket.take(1, now=90.0) == pytest.approx(1.0)
