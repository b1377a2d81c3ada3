"""Runs a collector for OTLP over HTTP, which parses requests with the protocol's own messages."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE, Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


class OtlpCollector:
    """A collector that responds with `status` and `headers`. `metrics`: the last export. `spans`: all received
    spans."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.status = 200
        self.answer = b""
        self.headers = {"content-type": "application/x-protobuf"}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.resource: dict[str, Any] = {}
        self.metrics: Series = {}
        self.spans: list[Span] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.endpoint = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def record_export(self, path: str, body: bytes) -> None:
        if path.endswith("/v1/metrics"):
            (resource_metrics,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
            self.resource = values_of(resource_metrics.resource.attributes)
            shown: Series = {}
            for scope in resource_metrics.scope_metrics:
                for metric in scope.metrics:
                    shown |= series_of(metric)
            self.metrics = shown
        elif path.endswith("/v1/traces"):
            for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans += [span for scope in resource_spans.scope_spans for span in scope.spans]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def running_collector(tls: ssl.SSLContext | None = None) -> Iterator[OtlpCollector]:
    collector = OtlpCollector(tls)
    try:
        yield collector
    finally:
        collector.close()


def series_of(metric: Metric) -> Series:
    """Return a metric's series as Prometheus stores them according to OpenTelemetry's specification."""
    if metric.HasField("gauge"):
        return {(metric.name, _labels(p.attributes)): p.as_double for p in metric.gauge.data_points}
    if metric.HasField("sum"):
        assert (metric.sum.is_monotonic, metric.sum.aggregation_temporality) == (
            True,
            AGGREGATION_TEMPORALITY_CUMULATIVE,
        )
        return {(f"{metric.name}_total", _labels(p.attributes)): p.as_double for p in metric.sum.data_points}
    shown: Series = {}
    for point in metric.histogram.data_points:
        labels = _labels(point.attributes)
        bounds = [*map(float, point.explicit_bounds), float("inf")]
        assert len(bounds) == len(point.bucket_counts)
        for bound, count in zip(bounds, accumulate(point.bucket_counts), strict=True):
            shown[f"{metric.name}_bucket", labels | {("le", str(bound))}] = count
        shown[f"{metric.name}_count", labels] = point.count
        shown[f"{metric.name}_sum", labels] = point.sum
    return shown


def values_of(attributes: Any) -> dict[str, Any]:
    return {attribute.key: _value(attribute.value) for attribute in attributes}


def _value(value: AnyValue) -> Any:
    if value.HasField("array_value"):
        return [_value(item) for item in value.array_value.values]
    return getattr(value, str(value.WhichOneof("value")))


def _labels(attributes: Any) -> frozenset[tuple[str, str]]:
    found: list[KeyValue] = list(attributes)
    return frozenset((each.key, each.value.string_value) for each in found)


def _handler_of(collector: OtlpCollector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.asked.append((self.path, {key.lower(): value for key, value in self.headers.items()}))
            if collector.status == 200:
                collector.record_export(self.path, body)
            self.send_response(collector.status)
            for name, value in {"content-length": str(len(collector.answer)), **collector.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(collector.answer)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
