"""The memory of an idle proxy stays within its limits. Other proxies would share its pages: this runs alone.

What one process holds depends on the packages that the tests install: its limit of 64 MB is for an installation without
extras, and `make bench` shows the distance. This test uses a limit for an installation with everything.
"""

from bench import memory

MB = 1 << 20


def test_one_process_and_each_further_worker_stay_within_their_limits() -> None:
    held = memory.measure()

    assert held.one_process <= 80 * MB
    assert held.further_worker <= 24 * MB
