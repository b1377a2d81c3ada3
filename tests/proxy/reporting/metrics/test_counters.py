"""Histograms of one process and of several equal those that Prometheus's own client library makes of the same times."""

import random
from bisect import bisect_left

from prometheus_client import CollectorRegistry, Histogram

from sluicegate.proxy.reporting.metrics.counters import BOUNDS, Durations, LabelledDurations


def test_histogram_equals_that_of_prometheus_client() -> None:
    durations = Durations()
    theirs = Histogram("t", "t", buckets=BOUNDS, registry=(registry := CollectorRegistry()))
    times = [*BOUNDS, 0.0, 11.0, *(random.Random(7).expovariate(20) for _ in range(500))]

    for seconds in times:
        durations.add(seconds)
        theirs.observe(seconds)

    (family,) = registry.collect()
    expected = {sample.labels["le"]: sample.value for sample in family.samples if sample.name == "t_bucket"}
    assert dict(durations.cumulative()) == expected
    assert abs(durations.seconds - sum(times)) < 1e-9


def test_durations_add_counts_sample_sixteen_times() -> None:
    once, each = Durations(), Durations()

    once.add(0.003, 16)
    for _ in range(16):
        each.add(0.003)

    assert once.counts == each.counts
    assert abs(once.seconds - each.seconds) < 1e-12


def test_durations_of_several_processes_are_added() -> None:
    one, two = LabelledDurations(), LabelledDurations()
    one.add("Produce", 0.001)
    two.add("Produce", 3.0)
    two.add("Fetch", 0.5)

    total = one + two
    one.add("Produce", 0.001)

    assert sorted(total) == ["Fetch", "Produce"]
    assert sum(total["Produce"].counts) == 2
    assert total["Produce"].counts[bisect_left(BOUNDS, 3.0)] == 1
