"""The memory of a proxy stays within its limits, and within the margin of bench/baseline.json. Other proxies would
share its pages: this runs alone.

What one process holds depends on the packages that the tests install: its limit of 64 MB is for an installation without
extras, and `make bench` shows the distance. This test uses a limit for an installation with everything.
"""

from bench import baseline, memory

MB = 1 << 20


def test_resident_memory_stays_within_limits_and_near_the_baseline() -> None:
    held = memory.measure()

    assert held.one_process <= 80 * MB
    assert held.further_worker <= 24 * MB
    assert baseline.read().more_memory(held.above_python_mb) == []
