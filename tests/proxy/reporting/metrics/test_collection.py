"""Several workers' counters are exported as those of one proxy, in a form that every reader accepts."""

from collections import Counter

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from sluicegate.proxy.reporting.metrics.batch_events import BatchCounts, BatchEvent
from sluicegate.proxy.reporting.metrics.collection import MetricsCollector, family_with_values, metrics_of
from sluicegate.proxy.reporting.metrics.counters import BOUNDS, Counters, LabelledDurations, Snapshot, total_of
from sluicegate.proxy.reporting.metrics.family import Family, Reading, counter, gauge, histogram
from sluicegate.proxy.reporting.metrics.topic_labels import TopicLabels, owners_of
from sluicegate.proxy.reporting.metrics.violation_labels import FairLabels
from sluicegate.validation.from_keys import rulebook_of
from tests.config.reading import SMALLEST, load_text

REJECTED = "sluicegate_rejected_batches"


def metrics_collector_of(snapshot: Snapshot) -> MetricsCollector:
    return MetricsCollector(lambda: metrics_of(snapshot))


def test_total_sums_counters_of_workers() -> None:
    one = Counters(
        produce_requests=3,
        accepted_records=10,
        batch_counts=BatchCounts({REJECTED: Counter({("t", "INVALID_TIMESTAMP"): 2})}),
    )
    two = Counters(
        produce_requests=4,
        ready=True,
        batch_counts=BatchCounts({REJECTED: Counter({("t", "INVALID_TIMESTAMP"): 5, ("u", "X"): 1})}),
    )

    total = total_of([one, two])

    assert (total.produce_requests, total.accepted_records, total.ready) == (7, 10, True)
    assert total.batch_counts[REJECTED] == {("t", "INVALID_TIMESTAMP"): 7, ("u", "X"): 1}
    assert (one.produce_requests, one.batch_counts[REJECTED]["t", "INVALID_TIMESTAMP"]) == (3, 2)


def test_total_is_not_ready_if_no_worker_is_ready() -> None:
    assert not total_of([Counters(), Counters()]).ready
    assert not total_of([]).ready


def test_scrape_contains_counter_values() -> None:
    counters = Counters(
        produce_requests=7,
        unchecked_partitions=2,
        batch_counts=BatchCounts({REJECTED: Counter({("t", "INVALID_TIMESTAMP"): 7})}),
    )

    snapshot = Snapshot(counters, 5, workers=4, worker_restarts=1)

    text = generate_latest(metrics_collector_of(snapshot)).decode()

    for line in (
        "sluicegate_produce_requests_total 7.0",
        "sluicegate_unchecked_batches_total 2.0",
        'sluicegate_rejected_batches_total{error="INVALID_TIMESTAMP",topic="t"} 7.0',
        "sluicegate_in_flight_requests 5.0",
        "sluicegate_workers 4.0",
        "sluicegate_worker_restarts_total 1.0",
    ):
        assert line in text.splitlines()


def test_openmetrics_output_is_parsed_with_all_families() -> None:
    counters = Counters(
        connections_opened=3,
        connections_closed=1,
        batch_counts=BatchCounts({REJECTED: Counter({("t", "X"): 1})}),
        connections_rejected=Counter({"limits.max_connections": 4}),
        closed_by_limit=Counter({"limits.frame_timeout_seconds": 5}),
        validations_abandoned=6,
        log_lines_dropped=7,
        violation_events_dropped=8,
        violation_events_failed=9,
    )

    text = generate_openmetrics(metrics_collector_of(Snapshot(counters, 0))).decode()

    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in parse_openmetrics(text)
        for sample in family.samples
    }
    assert samples["sluicegate_open_connections",] == 2
    assert samples["sluicegate_connections_total",] == 3
    assert samples["sluicegate_connections_rejected_total", "limits.max_connections"] == 4
    assert samples["sluicegate_connections_closed_by_limit_total", "limits.frame_timeout_seconds"] == 5
    assert samples["sluicegate_validations_abandoned_total",] == 6
    assert samples["sluicegate_log_lines_dropped_total",] == 7
    assert samples["sluicegate_violation_events_dropped_total",] == 8
    assert samples["sluicegate_violation_events_failed_total",] == 9
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


HOSTILE = 'a"b\\c\nd{e="f"} é☃'


def no_snapshot_value(_snapshot: Snapshot) -> float:
    return 0


@pytest.mark.parametrize(
    ("family", "reading", "samples"),
    [
        (gauge("now", "Now.", "Always.", no_snapshot_value), 5, {("now",): 5}),
        (
            counter("some", "Some.", "Always.", no_snapshot_value, ("error", "topic"), (("e", "t"),)),
            {(HOSTILE, "x"): 2.0**60},
            {("some_total", "e", "t"): 0, ("some_total", HOSTILE, "x"): 2.0**60},
        ),
        (counter("none", "None.", "Always.", no_snapshot_value, ("topic",)), {}, {}),
    ],
)
def test_text_and_openmetrics_formats_contain_every_label_and_value(
    family: Family, reading: Reading, samples: dict[tuple[str, ...], float]
) -> None:
    collector = MetricsCollector(lambda: [family_with_values(family, reading)])

    for families in (
        parse_text(generate_latest(collector).decode()),
        parse_openmetrics(generate_openmetrics(collector).decode()),
    ):
        (parsed,) = families
        assert (parsed.name, parsed.documentation, parsed.type) == (family.name, family.text, family.kind.value)
        assert {(sample.name, *sample.labels.values()): sample.value for sample in parsed.samples} == samples


def test_histogram_has_one_cumulative_bucket_per_bound() -> None:
    taken = LabelledDurations()
    for seconds in (0.001, 0.3, 40.0):
        taken.add("Produce", seconds)
    family = histogram("wait_seconds", "How long.", "Always.", no_snapshot_value, ("api",))

    text = generate_latest(MetricsCollector(lambda: [family_with_values(family, taken)])).decode()

    (parsed,) = parse_text(text)
    buckets = {sample.labels["le"]: sample.value for sample in parsed.samples if sample.name == "wait_seconds_bucket"}
    assert buckets == {str(bound): (bound >= 0.001) + (bound >= 0.3) for bound in BOUNDS} | {"+Inf": 3}
    others = {
        (sample.name, sample.labels["api"]): sample.value for sample in parsed.samples if "le" not in sample.labels
    }
    assert others == {("wait_seconds_count", "Produce"): 3, ("wait_seconds_sum", "Produce"): 40.301}


def test_topic_owner_info_lists_owners_of_topics_with_series() -> None:
    text = "topics: [{match: orders.*, owner: {team: a, contact: '#a'}}, {match: big, owner: {team: b}}, {match: none}]"
    rulebook = rulebook_of(load_text(SMALLEST + text).config)
    topics = ("orders.eu", "big", "none", "other")
    counters = Counters(batch_counts=BatchCounts())
    labels = TopicLabels(counters, lambda _: True, [])
    for topic in topics:
        labels.count(BatchEvent.REJECTED, topic, "a client", "INVALID_TIMESTAMP", 1)

    owners = owners_of(labels.counted(), rulebook)

    scrape = generate_latest(metrics_collector_of(Snapshot(counters, 0, topic_owners=owners))).decode()
    assert [line for line in scrape.splitlines() if line.startswith("sluicegate_topic_owner_info{")] == [
        'sluicegate_topic_owner_info{contact="",owner="b",topic="big"} 1.0',
        'sluicegate_topic_owner_info{contact="#a",owner="a",topic="orders.eu"} 1.0',
    ]
    assert owners_of(labels.counted(), rulebook_of(load_text(SMALLEST).config)) == {}


def test_client_owner_info_lists_owners_of_clients_with_series() -> None:
    text = """client_owners:
  - {principal: "User:*", owner: {team: a, contact: "#a"}}
  - {client_id: "b-*", owner: {team: b}}
"""
    labels = FairLabels(lambda _: None)
    for client_id, holder in (("x", "User:one"), ("b-1", "10.0.0.1"), ("y", "fe80::1"), (None, "10.0.0.2")):
        labels.label(client_id, holder)

    owners = labels.owned_by(rulebook_of(load_text(SMALLEST + text).config).in_file.client_owners)

    scrape = generate_latest(metrics_collector_of(Snapshot(Counters(), 0, client_owners=owners))).decode()
    assert [line for line in scrape.splitlines() if line.startswith("sluicegate_client_owner_info{")] == [
        'sluicegate_client_owner_info{client_id="b-1",contact="",owner="b"} 1.0',
        'sluicegate_client_owner_info{client_id="x",contact="#a",owner="a"} 1.0',
    ]
    assert labels.owned_by(()) == {}
