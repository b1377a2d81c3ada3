"""Declared metrics follow Prometheus's naming rules, show all counters, and match docs/metrics.md."""

import re
from collections import Counter
from dataclasses import fields

import pytest
from prometheus_client.exposition import generate_latest

from sluicegate.protocol.errors import ErrorCode
from sluicegate.proxy.reporting.metrics.batch_events import BatchCounts, BatchEvent, Unit
from sluicegate.proxy.reporting.metrics.collection import MetricsCollector, family_with_values, metrics_of
from sluicegate.proxy.reporting.metrics.counters import Counters, Durations, Gauges, LabelledDurations, Snapshot
from sluicegate.proxy.reporting.metrics.families import BATCH_COUNTERS, FAMILIES
from sluicegate.proxy.reporting.metrics.family import TOPIC, Family, Kind, batch_counter
from sluicegate.proxy.reporting.metrics.reference import page
from sluicegate.proxy.reporting.metrics.topic_labels import MAX_TOPICS, TopicLabels
from sluicegate.validation.verdict import Finding, Reason
from tests.oracle.kafka_java import ROOT

# The rules of https://prometheus.io/docs/practices/naming/ and of promtool's linter.
_NAME = re.compile(r"(sluicegate|kafka_server_brokertopicmetrics)(_[a-z0-9]+)+")
_LABEL = re.compile(r"[a-z][a-z_]*[a-z]")
_TYPES = {"counter", "gauge", "histogram", "summary"}
_NOT_BASE_UNITS = {
    "minutes",
    "hours",
    "days",
    "weeks",
    "milliseconds",
    "ms",
    "microseconds",
    "nanoseconds",
    "kilobytes",
}
_NOT_BASE_UNITS |= {"kilobytes", "megabytes", "percent", "bits"}

# The limit on the number of each label's values.
_BOUNDED = {
    "topic": "topic_labels",
    "client_id": "client_labels",
    "rule": "rule_labels, violation_labels",
    "mode": "Mode",
    "part": "EncryptedPart",
    "outcome": "OUTCOMES",
    "error": "ERROR_NAMES",
    "bound": "the configuration",
    "api": "APIS",
    "path": "two",
    "reason": "FallbackReason, PauseReason",
    "side": "two",
    "stage": "Stage",
    "condition": "Condition",
    "subject": "Status, certificates",
    "share": "GatherBudget's shares",
    "limit": "keys under limits",
    "quota": "the configuration",
    "registry": "the configuration",
    "broker": "ConnectionStats",
    "state": "two",
    "result": "two",
    "key": "keys that name certificates",
    "version": "one",
    "python": "one",
    "scan": "one",
    "owner": "the configuration",
    "contact": "the configuration",
}
VERDICTS = [
    Finding(code, reason, bad_count=3, records=3)
    for code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)
    for reason in Reason
]
_COUNTED_BY_OTHERS = {"ready"}  # a separate gauge, 0 or 1


def family_name(family: Family) -> str:
    return family.name


@pytest.mark.parametrize("family", FAMILIES, ids=family_name)
def test_metric_names_follow_prometheus_conventions(family: Family) -> None:
    words = family.name.split("_")

    assert _NAME.fullmatch(family.name)
    assert not family.name.endswith(("_total", "_count", "_sum", "_bucket", "_info_total")), (
        f"{family.name}: the exposition adds this suffix; declare the name without it"
    )
    assert not _TYPES & set(words)
    assert not _NOT_BASE_UNITS & set(words)
    assert family.kind is not Kind.HISTOGRAM or words[-1] == "seconds"


@pytest.mark.parametrize("family", FAMILIES, ids=family_name)
def test_metric_has_help_text_advice_and_bounded_labels(family: Family) -> None:
    assert re.fullmatch(r"[A-Z1].*[.)]", family.text)
    assert re.fullmatch(r".*[.)]", family.advice)
    assert "\n" not in family.text + family.advice
    for label in family.labels:
        assert _LABEL.fullmatch(label)
        assert label in _BOUNDED, (
            f"{family.name} has the new label {label!r}: name in _BOUNDED of this file what bounds its values"
        )
    for labels in family.always:
        assert len((labels,) if isinstance(labels, str) else labels) == len(family.labels)


def test_no_series_name_belongs_to_two_metric_families() -> None:
    names = [name for family in FAMILIES for name in family.series_names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", [each.name for each in fields(Counters) if each.name not in _COUNTED_BY_OTHERS])
def test_every_counter_is_exposed(name: str) -> None:
    counters = Counters()
    before = _scraped(Snapshot(counters, 0))

    _count_one(counters, name)

    assert _scraped(Snapshot(counters, 0)) != before, (
        f"Counters.{name} is counted but not exported: declare it in families/"
    )


@pytest.mark.parametrize("name", [each.name for each in fields(Counters)])
def test_every_counter_is_copied_for_a_scrape(name: str) -> None:
    counters = Counters()
    copy = counters.copied()

    _count_one(counters, name)

    assert getattr(copy, name) != getattr(counters, name), (
        f"Counters.{name}: a scrape reads it in another thread while it is counted; copy it in Counters.copied"
    )


@pytest.mark.parametrize("family", BATCH_COUNTERS, ids=family_name)
def test_batch_events_are_counted_copied_and_bounded(family: Family) -> None:
    """The declaration of a counter is enough; no other place lists the counters."""
    assert family.counted is not None
    when = family.counted.when
    verdict = next((verdict for verdict in VERDICTS if when is None or when(verdict)), None)
    assert verdict is not None, f"{family.name}: its `when` accepts none of VERDICTS; add a verdict that it counts"
    counters = Counters()
    labels = TopicLabels(counters, lambda _: True, [])

    for i in range(2 * MAX_TOPICS):
        for event in family.counted.events:
            labels.count(event, f"topic-{i}", "a client", "detail", 3, verdict)

    counts = labels.counted().batch_counts[family.name]
    each = 3 if family.counted.unit is Unit.RECORDS else 1
    assert counts.total() == 2 * MAX_TOPICS * each * len(family.counted.events)
    assert counts is not counters.batch_counts[family.name]
    assert len(counts) == (MAX_TOPICS + 1 if TOPIC in family.labels else 1)
    assert _scraped(Snapshot(counters, 0)) != _scraped(Snapshot(Counters(), 0))


@pytest.mark.parametrize(
    ("event", "labels"),
    [
        (BatchEvent.REJECTED, ("topic", "bound")),
        (BatchEvent.REJECTED, ("error", "topic")),
        (BatchEvent.FUTURE_TIMESTAMP, ("topic", "error")),
        (BatchEvent.FIXED, ("topic", "client_id")),
    ],
)
def test_rejects_label_that_batch_event_lacks(event: BatchEvent, labels: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=rf"sluicegate_x: labels .*, but batches {event.name} have \('topic'"):
        batch_counter("sluicegate_x", "X.", "X.", event, labels=labels)


def test_counter_without_labels_is_exposed_with_initial_value_zero() -> None:
    family = batch_counter("sluicegate_x", "X.", "X.", BatchEvent.REJECTED, labels=())
    assert family.read is not None

    assert [sample.value for sample in family_with_values(family, family.read(Snapshot(Counters(), 0))).samples] == [0]


@pytest.mark.parametrize("name", [each.name for each in fields(Gauges)])
def test_every_gauge_is_exposed(name: str) -> None:
    gauges = Gauges()
    before = _scraped(Snapshot(Counters(), 0, gauges=gauges))

    _count_one(gauges, name)

    assert _scraped(Snapshot(Counters(), 0, gauges=gauges)) != before


def test_metrics_page_matches_declared_families() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text() == page(), (
        "regenerate the page: .venv/bin/python -m sluicegate.proxy.reporting.metrics.reference > docs/metrics.md"
    )


def _scraped(snapshot: Snapshot) -> bytes:
    return generate_latest(MetricsCollector(lambda: metrics_of(snapshot)))


def _count_one(where: Counters | Gauges, name: str) -> None:
    counted = getattr(where, name)
    if isinstance(counted, int | float):
        setattr(where, name, counted + 1)
    elif isinstance(counted, Durations):
        counted.add(0.5)
    elif isinstance(counted, LabelledDurations):
        counted.add("Produce", 0.5)
    elif isinstance(counted, BatchCounts):
        counted["sluicegate_fixed_batches"] = Counter({"t": 1})
    else:
        counted.update(dict.fromkeys(_labels(name), 1))


def _labels(name: str) -> list[object]:
    """Return the labels of one entry of this counter."""
    many: dict[str, object] = {
        "violations": ("t", "r", "m", "c"),
        "broker_invalid": "invalidmessagecrcrecords",
        "broker_errors": ("a", "e", "c"),
        **dict.fromkeys(
            ("rehearsed_clients", "client_batches", "rule_batches", "rule_records", "request_errors"), ("t", "e")
        ),
        **dict.fromkeys(("paused", "upstream"), ("t", "e")),
    }
    return [many.get(name, "t")]
