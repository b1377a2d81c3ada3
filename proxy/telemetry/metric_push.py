"""Exports the metrics in /metrics every few seconds, with the same names, labels, values and bounds.

Counters are monotonic cumulative sums since the proxy's start. Their names lack the suffix `_total`, because a store
that follows Prometheus appends it. A separate thread exports, so no client waits for a collector. A failed export is
counted, and one log line per minute gives the reason. Nothing is stored for later, because the next export contains the
same metrics with newer values.
"""

import contextvars
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import structlog
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it ships none
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
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
from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.reporting.metrics.collection import CollectMetrics
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.telemetry.collector import SCOPE, Collector, ExportFailed

_UNITS = {"seconds": "s", "bytes": "By"}
_BOUND = "le"
_CUMULATIVE = AggregationTemporality.CUMULATIVE


def metrics_data(resource: Resource, families: Iterable[Family], started_ns: int, now_ns: int) -> MetricsData:
    """Return one export of these families. The times have the same meaning as for `metrics_of`."""
    scope_metrics = ScopeMetrics(SCOPE, list(metrics_of(families, started_ns, now_ns)), "")
    return MetricsData([ResourceMetrics(resource, [scope_metrics], "")])


def metrics_of(families: Iterable[Family], started_ns: int, now_ns: int) -> Iterator[Metric]:
    """Yield the families that have series.

    `started_ns` is the time when counting started, and `now_ns` the current time, in ns since the epoch.
    """
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
    """Return one point for each set of labels.

    Each of Prometheus's buckets includes all lower buckets; OTLP's buckets do not.
    """
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
            max=None,  # type: ignore[arg-type]  # as min
        )
        for labels, buckets in cumulative.items()
    ]


def _attributes(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: printable(value) for name, value in labels.items()}


def _unit_of(name: str) -> str:
    """Return the unit that the name contains.

    A store that follows Prometheus does not append a unit that is already in the name.
    """
    return next((unit for word, unit in _UNITS.items() if word in name.split("_")), "")


_AT_THE_END_SECONDS = 2.0
_DESTINATION = "otel metrics"


class MetricPush:
    """Exports the result of `collect` at intervals until `close`."""

    def __init__(
        self,
        collect: CollectMetrics,
        collector: Collector,
        resource: Resource,
        every_seconds: float,
        counters: Counters,
        health: WriteHealth,
    ) -> None:
        """`health` records the results of exports."""
        self._health = health
        self._collect = collect
        self._collector = collector
        self._exporter = collector.metric_exporter()
        self._resource = resource
        self._every_seconds = every_seconds
        self._counters = counters
        self._started_ns = time.time_ns()
        self._ends = threading.Event()
        self._log = structlog.get_logger("sluicegate.otel")
        self._reports = OnceAMinute()
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="otel metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Export the last values, for at most 2 s."""
        self._collector.end_at(time.monotonic() + _AT_THE_END_SECONDS)
        self._ends.set()
        self._thread.join(_AT_THE_END_SECONDS)
        self._exporter.shutdown()

    def _run(self) -> None:
        while not self._ends.is_set():
            self._push()
            self._ends.wait(self._every_seconds)
        self._push()

    def _push(self) -> None:
        try:
            data = metrics_data(self._resource, self._collect(), self._started_ns, time.time_ns())
            rejected = self._rejected_of(self._collector.response_to(lambda: self._exporter.export(data)))
            if rejected:
                self._failed(f"the collector rejected {rejected} of their points")
            else:
                self._counters.otel_metrics_sent += 1
                self._health.succeeded(_DESTINATION)
        except ExportFailed as error:
            self._failed(str(error))
        except Exception as error:  # an error in one export must not end the thread
            self._failed(f"internal error: {error!r}")

    def _rejected_of(self, response: bytes) -> int:
        try:
            return int(ExportMetricsServiceResponse.FromString(response).partial_success.rejected_data_points)
        except DecodeError:
            raise ExportFailed("the response is not OTLP: check otel.endpoint") from None

    def _failed(self, reason: str) -> None:
        self._counters.otel_metrics_failed += 1
        self._health.failed(_DESTINATION, reason)
        if self._reports.due(reason) is not None:
            self._log.error(
                "metric export failed",
                reason=reason,
                failed_so_far=self._counters.otel_metrics_failed,
                advice="check the collector of otel.endpoint; the next export includes these values",
            )
