"""What /metrics says, byte for byte what Prometheus's own client library says of the same metrics."""

import math
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Theirs
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from sluicegate.proxy.reporting.durations import BOUNDS, Durations, DurationsBy
from sluicegate.proxy.reporting.exposition import openmetrics_text, prometheus_text, takes_gzip, wanted_by
from sluicegate.proxy.reporting.family import counter, gauge, histogram
from sluicegate.proxy.reporting.metrics import metrics_of, shown
from sluicegate.proxy.reporting.tally import Snapshot, Tally

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.floats() | st.integers(0, 2**60)
TIMES = st.lists(st.sampled_from(BOUNDS) | st.floats(0, 20), max_size=20)
# As Prometheus 2 and 3 ask, curl, and some who ask for what is not there.
ACCEPTED = (
    "",
    "*/*",
    "text/plain",
    "text/plain;version=0.0.4",
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,*/*;q=0.1",
    "application/openmetrics-text",
    "application/openmetrics-text; version=0.0.1",
    "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,/;q=0.1",
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
    "application/openmetrics-text;version=1.0.0;escaping=underscores;q=0.5",
)


class Shows(Collector):
    """What their library is told."""

    def __init__(self, metrics: Iterable[Theirs]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterable[Theirs]:
        return self._metrics


def theirs(metrics: Iterable[Theirs]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(Shows(metrics))
    return registry


def nothing_read(_snapshot: Snapshot) -> float:
    return 0


@given(text=TEXTS, value=NUMBERS)
def test_one_number(text: str, value: float) -> None:
    ours = shown(gauge("sluicegate_something", text, "Always.", nothing_read), value)
    registry = theirs([GaugeMetricFamily("sluicegate_something", text, value)])

    assert prometheus_text([ours]) == generate_latest(registry)
    assert openmetrics_text([ours]) == openmetrics.generate_latest(registry)


@given(text=TEXTS, counted=st.dictionaries(st.tuples(TEXTS, TEXTS), NUMBERS, max_size=5))
def test_counts_by_labels(text: str, counted: dict[tuple[str, str], float]) -> None:
    ours = shown(counter("sluicegate_somethings", text, "Always.", nothing_read, ("topic", "error")), counted)
    family = CounterMetricFamily("sluicegate_somethings", text, labels=("topic", "error"))
    for labels, value in sorted(counted.items()):
        family.add_metric(labels, value)
    registry = theirs([family])

    assert prometheus_text([ours]) == generate_latest(registry)
    assert openmetrics_text([ours]) == openmetrics.generate_latest(registry)


@given(times=st.dictionaries(TEXTS, TIMES, max_size=3))
def test_times_by_a_label(times: dict[str, list[float]]) -> None:
    taken = DurationsBy()
    family = HistogramMetricFamily("sluicegate_wait_seconds", "How long.", labels=("api",))
    for api, seconds in sorted(times.items()):
        durations = taken[api] = Durations()
        for each in seconds:
            durations.add(each)
        buckets = [(repr(bound), float(sum(each <= bound for each in seconds))) for bound in BOUNDS]
        family.add_metric([api], [*buckets, ("+Inf", float(len(seconds)))], math.fsum([durations.seconds]))
    ours = shown(histogram("sluicegate_wait_seconds", "How long.", "Always.", nothing_read, ("api",)), taken)
    registry = theirs([family])

    assert prometheus_text([ours]) == generate_latest(registry)
    assert openmetrics_text([ours]) == openmetrics.generate_latest(registry)


@pytest.mark.parametrize("accept", ACCEPTED)
def test_the_format_and_its_name_are_those_that_are_asked_for(accept: str) -> None:
    their_write, their_type = choose_encoder(accept)
    registry = theirs(as_theirs())

    write, content_type = wanted_by(accept)

    assert content_type == their_type
    assert write(metrics_of(Snapshot(Tally(), 0))) == their_write(registry)


def test_a_version_that_is_none_is_one_that_is_not_there() -> None:
    assert wanted_by("application/openmetrics-text;version=none") == wanted_by("*/*")


@pytest.mark.parametrize("encodings", ["", "gzip", "deflate, GZIP;q=0.5", "identity", "gzipped", "br,deflate"])
def test_gzip_is_for_who_names_it(encodings: str) -> None:
    assert takes_gzip(encodings) == gzip_accepted(encodings)


def as_theirs() -> Iterator[Theirs]:
    """All our families, as their library holds them."""
    for metric in metrics_of(Snapshot(Tally(), 0)):
        their_metric = Theirs(metric.name, metric.documentation, metric.type)
        for sample in metric.samples:
            their_metric.add_sample(sample.name, sample.labels, sample.value)
        yield their_metric
