"""Converts the families of /metrics to the SDK's metrics: the same names, labels, values and bounds.

Counters are monotonic cumulative sums since the proxy's start. Their names have no `_total`: a store that follows
Prometheus appends it.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from prometheus_client.core import Metric as Family
from prometheus_client.samples import Sample

from sluicegate.proxy.reporting.bounded_text import printable
from sluicegate.proxy.telemetry.resource import SCOPE

_UNITS = {"seconds": "s", "bytes": "By"}
_BOUND = "le"
_CUMULATIVE = AggregationTemporality.CUMULATIVE


def metrics_data(resource: Resource, families: Iterable[Family], started_ns: int, now_ns: int) -> MetricsData:
    """Return one export of these families. Times: `metrics_of`."""
    scope_metrics = ScopeMetrics(SCOPE, list(metrics_of(families, started_ns, now_ns)), "")
    return MetricsData([ResourceMetrics(resource, [scope_metrics], "")])


def metrics_of(families: Iterable[Family], started_ns: int, now_ns: int) -> Iterator[Metric]:
    """Yield the families that have series. Times in ns since the epoch: when counting started, and now."""
    for family in families:
        if family.samples:
            data = _data_of(family, started_ns, now_ns)
            yield Metric(family.name, family.documentation, _unit_of(family.name), data)


def _data_of(family: Family, started_ns: int, now_ns: int) -> Sum | Gauge | Histogram:
    if family.type == "histogram":
        return Histogram(_histogram_points(family.samples, started_ns, now_ns), _CUMULATIVE)
    points = [
        NumberDataPoint(_attributes(sample.labels), started_ns, now_ns, float(sample.value))
        for sample in family.samples
    ]
    return Sum(points, _CUMULATIVE, is_monotonic=True) if family.type == "counter" else Gauge(points)


def _histogram_points(samples: Iterable[Sample], started_ns: int, now_ns: int) -> list[HistogramDataPoint]:
    """Return one point for each set of labels. Prometheus's buckets include the lower ones, OTLP's do not."""
    cumulative: dict[tuple[tuple[str, str], ...], list[tuple[str, float]]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in samples:
        labels = tuple((name, value) for name, value in sample.labels.items() if name != _BOUND)
        if sample.name.endswith("_bucket"):
            cumulative.setdefault(labels, []).append((sample.labels[_BOUND], sample.value))
        elif sample.name.endswith("_sum"):
            sums[labels] = sample.value
    return [
        HistogramDataPoint(
            attributes=_attributes(dict(labels)),
            start_time_unix_nano=started_ns,
            time_unix_nano=now_ns,
            count=int(buckets[-1][1]),
            sum=sums[labels],
            bucket_counts=[int(above - below) for below, above in pairwise([0.0, *(count for _, count in buckets)])],
            explicit_bounds=[float(bound) for bound, _ in buckets[:-1]],
            min=None,  # type: ignore[arg-type]  # optional in OTLP; the proxy does not keep it
            max=None,  # type: ignore[arg-type]
        )
        for labels, buckets in cumulative.items()
    ]


def _attributes(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: printable(value) for name, value in labels.items()}


def _unit_of(name: str) -> str:
    """Return the unit that the name has: a store that follows Prometheus does not append a unit that is there."""
    return next((unit for word, unit in _UNITS.items() if word in name.split("_")), "")
