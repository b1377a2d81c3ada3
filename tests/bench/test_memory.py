"""The memory of an idle worker stays within its limit. Other proxies would share its pages: this runs alone.

What one process holds depends on the packages that the tests install; `make bench` shows it beside its limit.
"""

from bench import memory

MB = 1 << 20


def test_each_further_worker_stays_within_its_limit() -> None:
    assert memory.measure().further_worker <= 24 * MB
