"""The traffic of topics and clients is counted for 15 minutes, in bounded memory, and summed over processes."""

import pytest

from sluicegate.proxy.live.traffic import BINS, Traffic, sum_of_histories
from tests.proxy.live.events import NOW

BEGIN = NOW - NOW % 10_000
"""A time at which a bin begins."""


def test_counts_are_kept_by_10_s_and_a_pause_counts_as_zero() -> None:
    traffic = Traffic(9, BEGIN)
    traffic.add("orders", 2, 30, 400)
    traffic.add("orders", violations=1)
    traffic.tick(BEGIN + 25_000)
    traffic.add("orders", 1, 1, 1)
    before = traffic.history("orders")
    traffic.tick(BEGIN + 30_000)

    assert before == {
        "begin": BEGIN // 1000,
        "bin_seconds": 10,
        "batches": [2, 0],
        "records": [30, 0],
        "size": [400, 0],
        "violations": [1, 0],
    }
    (state,) = traffic.state(0)
    assert (state["first_ms"], state["last_ms"]) == (BEGIN, BEGIN + 25_000)
    assert state["rates"] == {"batches": 0.1, "records": 0.1, "size": 0.1, "violations": 0.0}
    assert traffic.history("payments") is None


@pytest.mark.parametrize("seconds", [10 * BINS, 10 * BINS + 5, 100_000, -100_000], ids=str)
def test_counts_expire_after_15_minutes_and_new_ones_survive_clock_jumps(seconds: int) -> None:
    traffic = Traffic(9, BEGIN)
    traffic.add("orders", 7, 7, 7)
    traffic.tick(BEGIN + 1000 * seconds)
    traffic.add("orders", 5, 5, 5)
    now_ms = max(BEGIN, BEGIN + 1000 * seconds) + 10_000
    traffic.tick(now_ms)

    history = traffic.history("orders")

    assert history is not None
    assert sum(history["batches"]) == (12 if seconds < 0 else 5)
    assert len(history["batches"]) < BINS
    assert history["begin"] + 10 * len(history["batches"]) == now_ms // 10_000 * 10


def test_least_recently_seen_name_is_replaced() -> None:
    traffic = Traffic(2, BEGIN)
    for name in ("a", None, "a", "c"):
        traffic.add(name, 1)

    assert [each["name"] for each in traffic.state(0)] == ["a", "c"]


def test_histories_of_several_proxies_are_added_by_their_time() -> None:
    histories = []
    for late in range(2):
        traffic = Traffic(9, BEGIN + 10_000 * late)
        traffic.add("orders", 1, 2, 3)
        traffic.tick(BEGIN + 20_000)
        histories.append(traffic.history("orders"))

    summed = sum_of_histories([each for each in histories if each is not None])

    assert summed is not None
    assert (summed["begin"], summed["batches"], summed["size"]) == (BEGIN // 1000, [1, 1], [3, 3])
    assert sum_of_histories([]) is None
