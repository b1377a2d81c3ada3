"""What /metrics shows, as OTLP has it: the same names, labels, values and bounds.

Counters are monotonic cumulative sums since the proxy's start; their names have no `_total`, which who stores them as
Prometheus does puts there again.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    Sum,
)
from prometheus_client.core import Metric as Shown
from prometheus_client.samples import Sample

from sluicegate.proxy.reporting.bounded_text import printable
from sluicegate.proxy.telemetry.attributes import attributes_of

_UNITS = {"seconds": "s", "bytes": "By"}
_BOUND = "le"
_Labels = tuple[tuple[str, str], ...]


def metrics_of(shown: Iterable[Shown], started_ns: int, now_ns: int) -> Iterator[Metric]:
    """Of those that have series. Times in ns since the epoch: that of the start, from which all is counted, and that of
    the look.
    """
    for family in shown:
        if not family.samples:
            continue
        metric = Metric(name=family.name, description=family.documentation, unit=_unit_of(family.name))
        if family.type == "histogram":
            points = _histogram_points(family.samples, started_ns, now_ns)
            metric.histogram.CopyFrom(
                Histogram(data_points=points, aggregation_temporality=AGGREGATION_TEMPORALITY_CUMULATIVE)
            )
        elif family.type == "counter":
            metric.sum.CopyFrom(
                Sum(
                    data_points=_number_points(family.samples, started_ns, now_ns),
                    aggregation_temporality=AGGREGATION_TEMPORALITY_CUMULATIVE,
                    is_monotonic=True,
                )
            )
        else:
            metric.gauge.CopyFrom(Gauge(data_points=_number_points(family.samples, 0, now_ns)))
        yield metric


def _number_points(samples: Iterable[Sample], started_ns: int, now_ns: int) -> list[NumberDataPoint]:
    return [
        NumberDataPoint(
            attributes=_attributes(tuple(sample.labels.items())),
            start_time_unix_nano=started_ns,
            time_unix_nano=now_ns,
            as_double=sample.value,
        )
        for sample in samples
    ]


def _histogram_points(samples: Iterable[Sample], started_ns: int, now_ns: int) -> list[HistogramDataPoint]:
    """Of each set of labels: Prometheus's buckets hold what is below too, OTLP's do not."""
    cumulative: dict[_Labels, list[tuple[str, float]]] = {}
    sums: dict[_Labels, float] = {}
    for sample in samples:
        labels = tuple((name, value) for name, value in sample.labels.items() if name != _BOUND)
        if sample.name.endswith("_bucket"):
            cumulative.setdefault(labels, []).append((sample.labels[_BOUND], sample.value))
        elif sample.name.endswith("_sum"):
            sums[labels] = sample.value
    return [
        HistogramDataPoint(
            attributes=_attributes(labels),
            start_time_unix_nano=started_ns,
            time_unix_nano=now_ns,
            count=int(buckets[-1][1]),
            sum=sums[labels],
            explicit_bounds=[float(bound) for bound, _ in buckets[:-1]],
            bucket_counts=[int(above - below) for below, above in pairwise([0.0, *(count for _, count in buckets)])],
        )
        for labels, buckets in cumulative.items()
    ]


def _attributes(labels: _Labels) -> list[KeyValue]:
    return attributes_of({name: printable(value) for name, value in labels})


def _unit_of(name: str) -> str:
    """As the name says it: those who store metrics as Prometheus does put no unit behind a name that has it."""
    return next((unit for word, unit in _UNITS.items() if word in name.split("_")), "")
