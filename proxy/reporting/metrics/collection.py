"""Builds `prometheus_client`'s metric families with their current values, for /metrics and OTLP.

`sluicegate.proxy.reporting.metrics.families` declares them.
"""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from sluicegate.proxy.reporting.metrics.counters import Durations, LabelledDurations, Snapshot
from sluicegate.proxy.reporting.metrics.families import FAMILIES
from sluicegate.proxy.reporting.metrics.family import Family, Kind, Reading

CollectMetrics = Callable[[], Iterable[Metric]]
"""Returns all families with their current values."""


class MetricsCollector(Collector):
    """A custom collector, which `prometheus_client`'s encoders read."""

    def __init__(self, collect: CollectMetrics) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        """Return all families with their current values."""
        return self._collect()


def metrics_of(snapshot: Snapshot) -> Iterator[Metric]:
    """Yield every family with its values."""
    for family in FAMILIES:
        if family.read is not None:
            yield family_with_values(family, family.read(snapshot))


def family_with_values(family: Family, reading: Reading) -> Metric:
    """Return a family with its values."""
    if family.kind is Kind.HISTOGRAM:
        return _histogram(family, reading)
    made = CounterMetricFamily if family.kind is Kind.COUNTER else GaugeMetricFamily
    metric = made(family.name, family.text, labels=family.labels)
    for labels, value in _series(family, reading):
        metric.add_metric(labels, value)  # the sum over all values of a label has no labels
    return metric


def _series(family: Family, reading: Reading) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(reading, int | float):
        yield (), reading
        return
    assert not isinstance(reading, Durations | LabelledDurations)
    known = dict.fromkeys(map(_as_labels, family.always), 0.0)
    for labels, value in reading.items():
        known[_as_labels(labels)] = value
    yield from sorted(known.items())


def _as_labels(labels: str | tuple[str, ...]) -> tuple[str, ...]:
    return (labels,) if isinstance(labels, str) else labels


def _histogram(family: Family, reading: Reading) -> Metric:
    metric = HistogramMetricFamily(family.name, family.text, labels=family.labels)
    if isinstance(reading, Durations):
        metric.add_metric((), list(reading.cumulative()), reading.seconds)
        return metric
    assert isinstance(reading, LabelledDurations)
    for label, durations in sorted(reading.items()):
        metric.add_metric((label,), list(durations.cumulative()), durations.seconds)
    return metric
