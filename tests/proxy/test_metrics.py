"""Counters of several workers as one proxy's."""

from collections import Counter

from prometheus_client import generate_latest

from proxy.metrics import Snapshot, Tally, registry_of, total_of


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

    text = generate_latest(registry_of(lambda: Snapshot(tally, 5, workers=4, worker_restarts=1))).decode()

    for line in (
        "sluicegate_produce_requests_total 7.0",
        "sluicegate_unchecked_batches_total 2.0",
        'sluicegate_refused_batches_total{error="INVALID_TIMESTAMP",topic="t"} 7.0',
        "sluicegate_in_flight 5.0",
        "sluicegate_workers 4.0",
        "sluicegate_worker_restarts_total 1.0",
    ):
        assert line in text.splitlines()
