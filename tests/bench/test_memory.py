"""The memory of an idle proxy stays within its limits. Other proxies would share its pages: this runs alone."""

from bench import memory

MB = 1 << 20


def test_an_idle_process_and_each_further_worker_stay_within_the_limits() -> None:
    held = memory.measure()

    assert held.one_process <= 64 * MB
    assert held.further_worker <= 24 * MB
