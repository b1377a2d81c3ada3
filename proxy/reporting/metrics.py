"""How Prometheus reads what the proxy counts: families are made when somebody asks.

Which there are is declared in `sluicegate.proxy.reporting.families`.
"""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from sluicegate.proxy.reporting.durations import Durations, DurationsBy
from sluicegate.proxy.reporting.families import FAMILIES
from sluicegate.proxy.reporting.family import Family, Kind, Reading
from sluicegate.proxy.reporting.tally import Snapshot


class TallyCollector(Collector):
    """Shows a Snapshot as Prometheus families."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterable[Metric]:
        """Every family with its current values."""
        snapshot = self._snapshot()
        for family in FAMILIES:
            if family.read is not None:
                yield shown(family, family.read(snapshot))


def shown(family: Family, reading: Reading) -> Metric:
    """A family with its values, as Prometheus's client library has it."""
    if family.kind is Kind.HISTOGRAM:
        return _histogram(family, reading)
    make = CounterMetricFamily if family.kind is Kind.COUNTER else GaugeMetricFamily
    metric = make(family.name, family.text, labels=family.labels)
    for labels, value in _series(family, reading):
        metric.add_metric(labels, value)
    return metric


def _series(family: Family, reading: Reading) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(reading, int | float):
        yield (), reading
        return
    assert not isinstance(reading, Durations | DurationsBy)
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
    assert isinstance(reading, DurationsBy)
    for label, durations in sorted(reading.items()):
        metric.add_metric((label,), list(durations.cumulative()), durations.seconds)
    return metric


def registry_of(snapshot: Callable[[], Snapshot]) -> CollectorRegistry:
    """A registry that shows what `snapshot` says at each scrape, and nothing else."""
    registry = CollectorRegistry()
    registry.register(TallyCollector(snapshot))
    return registry
