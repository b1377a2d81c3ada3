"""Counters of several workers as one proxy's, in a form that every reader takes."""

from collections import Counter

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from sluicegate.proxy.reporting.exposition import openmetrics_text, prometheus_text
from sluicegate.proxy.reporting.metrics import metrics_of
from sluicegate.proxy.reporting.tally import Snapshot, Tally, total_of


def test_workers_counters_are_added_up() -> None:
    one = Tally(produce_requests=3, accepted_records=10, refused=Counter({("t", "INVALID_TIMESTAMP"): 2}))
    two = Tally(produce_requests=4, ready=True, refused=Counter({("t", "INVALID_TIMESTAMP"): 5, ("u", "X"): 1}))

    total = total_of([one, two])

    assert (total.produce_requests, total.accepted_records, total.ready) == (7, 10, True)
    assert total.refused == {("t", "INVALID_TIMESTAMP"): 7, ("u", "X"): 1}
    assert (one.produce_requests, one.refused["t", "INVALID_TIMESTAMP"]) == (3, 2)


def test_nobody_ready_is_not_ready() -> None:
    assert not total_of([Tally(), Tally()]).ready
    assert not total_of([]).ready


def test_a_scrape_shows_them() -> None:
    tally = Tally(produce_requests=7, unchecked_partitions=2, refused=Counter({("t", "INVALID_TIMESTAMP"): 7}))

    text = prometheus_text(metrics_of(Snapshot(tally, 5, workers=4, worker_restarts=1))).decode()

    for line in (
        "sluicegate_produce_requests_total 7.0",
        "sluicegate_unchecked_batches_total 2.0",
        'sluicegate_refused_batches_total{error="INVALID_TIMESTAMP",topic="t"} 7.0',
        "sluicegate_in_flight 5.0",
        "sluicegate_workers 4.0",
        "sluicegate_worker_restarts_total 1.0",
    ):
        assert line in text.splitlines()


def test_an_openmetrics_reader_takes_every_family() -> None:
    tally = Tally(
        connections_opened=3,
        connections_closed=1,
        refused=Counter({("t", "X"): 1}),
        connections_refused=Counter({"limits.max_connections": 4}),
        cut_off=Counter({"limits.frame_seconds": 5}),
        judgements_abandoned=6,
        log_lines_dropped=7,
        violations_dropped=8,
        violations_failed=9,
    )

    text = openmetrics_text(metrics_of(Snapshot(tally, 0))).decode()

    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["sluicegate_open_connections",] == 2
    assert samples["sluicegate_connections_total",] == 3
    assert samples["sluicegate_connections_refused_total", "limits.max_connections"] == 4
    assert samples["sluicegate_cut_off_total", "limits.frame_seconds"] == 5
    assert samples["sluicegate_judgements_abandoned_total",] == 6
    assert samples["sluicegate_log_lines_dropped_total",] == 7
    assert samples["sluicegate_violations_dropped_total",] == 8
    assert samples["sluicegate_violations_failed_total",] == 9
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
