"""The memory of a proxy stays within its limits, and within the margin of bench/baseline.json. The test runs alone,
because other proxies would share pages with this one.

A process's memory depends on the installed packages. The limit of 64 MB applies to an installation without extras,
which `make bench` measures. This test uses a limit for an installation with all extras.
"""

from bench import baseline, memory

MB = 1 << 20


def test_resident_memory_stays_within_limits_and_near_the_baseline() -> None:
    held = memory.measure()

    assert held.one_process <= 80 * MB
    assert held.further_worker <= 24 * MB
    assert baseline.read().more_memory(held.above_python_mb) == []
