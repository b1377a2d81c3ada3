"""Creates spans for Produce requests by OpenTelemetry's semantic conventions for messaging and Kafka, and exports them.

A separate thread with a bounded queue exports them, so the event loop never waits for a collector. Spans that do not
fit into the queue are dropped and counted. Spans that the collector does not accept are counted too, and one log line
per minute gives the reason.

The SDK's own BatchSpanProcessor is not used, for four reasons. Its queue is bounded in spans, not in bytes. It accepts
only finished spans, which the event loop would have to create. It logs each dropped span on the event loop. And its
older releases, which `otel` accepts, do not count dropped spans.
"""

import contextvars
import threading
import time
from collections.abc import Sequence

import structlog
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it ships none
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode

from sluicegate.proxy.reporting.bounded_queue import BoundedQueue
from sluicegate.proxy.reporting.bounded_text import printable
from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.telemetry.collector import SCOPE, Collector, ExportFailed
from sluicegate.proxy.telemetry.request_traces import NOT_ACCEPTED, RequestSummary

Value = str | int | float | bool | Sequence[str]

_IDS = RandomIdGenerator()
_NS = 1_000_000_000
_OURS = "sluicegate."
_PROBLEM = ("topic", "partition", "error", "reason", "rule", "record", "record_timestamp", "diagnosis")


def span_of(summary: RequestSummary, resource: Resource) -> ReadableSpan:
    """Return a span in a separate trace.

    It lasts from the request's last byte until the broker's response began or, without a response, until the request
    was sent.
    """
    sent_ns = summary.sent_ms * 1_000_000
    topic = summary.topics[0] if summary.topic_count == 1 and summary.topics else None
    status = Status(StatusCode.UNSET)
    if summary.outcome in NOT_ACCEPTED and summary.problem is not None:
        status = Status(StatusCode.ERROR, f"{summary.problem['error']}: {summary.problem['reason']}")
    return ReadableSpan(
        name="produce" if topic is None else f"produce {topic}",
        context=SpanContext(_IDS.generate_trace_id(), _IDS.generate_span_id(), is_remote=False),
        resource=resource,
        attributes={name: value for name, value in _attributes(summary, topic).items() if value is not None},
        kind=SpanKind.SERVER,
        status=status,
        start_time=sent_ns - int(summary.proxy_seconds * _NS),
        end_time=sent_ns + int((summary.upstream_seconds or 0) * _NS),
        instrumentation_scope=SCOPE,
    )


def _attributes(summary: RequestSummary, topic: str | None) -> dict[str, Value | None]:
    client, problem = summary.client, summary.problem or {}
    host, _, port = client.peer.rpartition(":")
    attributes: dict[str, Value | None] = {
        "messaging.system": "kafka",
        "messaging.operation.type": "send",
        "messaging.operation.name": "produce",
        "messaging.destination.name": topic,
        "messaging.client.id": _shown(client.client_id),
        "messaging.batch.message_count": summary.records,
        "network.peer.address": host.strip("[]") if port.isdecimal() else client.peer,
        "network.peer.port": int(port) if port.isdecimal() else None,
        "error.type": problem.get("error") if summary.outcome in NOT_ACCEPTED else None,
        _OURS + "outcome": summary.outcome,
        _OURS + "topics": summary.topics,
        _OURS + "topics.count": summary.topic_count,
        _OURS + "partitions.count": summary.partition_count,
        _OURS + "acks": summary.acks,
        _OURS + "api_version": summary.version,
        _OURS + "client.software": _software(client.software_name, client.software_version),
        _OURS + "client.principal": _shown(client.principal),
        _OURS + "untraced": summary.untraced,
        _OURS + "proxy_seconds": summary.proxy_seconds,
        _OURS + "upstream_seconds": summary.upstream_seconds,
    }
    attributes |= {f"{_OURS}batches.{outcome}": count for outcome, count in summary.batches.items()}
    for name in _PROBLEM:
        found = problem.get(name)
        attributes[f"{_OURS}problem.{name}"] = printable(found) if isinstance(found, str) else found
    return attributes


def _software(name: str | None, version: str | None) -> str | None:
    return None if name is None else printable(f"{name} {version or ''}".rstrip())


def _shown(text: str | None) -> str | None:
    return None if text is None else printable(text)


_DESTINATION = "otel traces"
_MAX_QUEUED = 2000
_SPAN_BYTES = 4000  # the estimated size of a queued request
_MAX_QUEUED_BYTES = 8 << 20
_AT_ONCE = 200
_GATHER_SECONDS = 1.0
_AT_THE_END_SECONDS = 2.0
_TO_COUNT_SECONDS = 0.5


class SpanPush:
    """Exports spans until `close`. `health` records the results of exports."""

    def __init__(self, collector: Collector, resource: Resource, counters: Counters, health: WriteHealth) -> None:
        self._health = health
        self._collector = collector
        self._exporter = collector.span_exporter()
        self._resource = resource
        self._counters = counters
        self._queue: BoundedQueue[RequestSummary] = BoundedQueue(_MAX_QUEUED, _MAX_QUEUED_BYTES)
        self._ends = threading.Event()
        self._ends_at = float("inf")
        self._log = structlog.get_logger("sluicegate.otel")
        self._reports = OnceAMinute()
        context = contextvars.copy_context()  # the context contains the worker's index for log lines
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="otel traces", daemon=True)
        self._thread.start()

    def keep(self, summary: RequestSummary) -> None:
        """Queue a request for a span, without waiting."""
        if not self._queue.put(summary, _SPAN_BYTES):
            self._counters.otel_spans_dropped += 1
            self._health.failed(_DESTINATION, "the queue is full because spans are exported too slowly")

    def close(self) -> None:
        """Export the queued spans for at most 2 s. Count the remaining spans."""
        self._ends_at = time.monotonic() + _AT_THE_END_SECONDS
        self._collector.end_at(self._ends_at)
        self._queue.close()
        self._ends.set()
        self._thread.join(_AT_THE_END_SECONDS)
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # it ends the wait between two attempts
        self._thread.join(_TO_COUNT_SECONDS)

    def _run(self) -> None:
        while not self._queue.ended and time.monotonic() < self._ends_at:
            first = self._queue.take()
            if first is not None:
                self._ends.wait(_GATHER_SECONDS)
                spans = self._gathered(first)
                if spans:
                    self._send(spans)
        self._counters.otel_spans_dropped += len(self._queue)

    def _gathered(self, first: RequestSummary) -> list[ReadableSpan]:
        spans: list[ReadableSpan] = []
        summary: RequestSummary | None = first
        while summary is not None:
            try:
                spans.append(span_of(summary, self._resource))
            except Exception as error:  # a span that cannot be encoded must not stop the next ones
                self._failed(1, f"internal error: {error!r}")
            summary = self._queue.take(0) if len(spans) < _AT_ONCE else None
        return spans

    def _send(self, spans: list[ReadableSpan]) -> None:
        try:
            response = self._collector.response_to(lambda: self._exporter.export(spans))
            rejected = min(self._rejected_of(response), len(spans))
        except ExportFailed as error:
            self._failed(len(spans), str(error))
        else:
            self._counters.otel_spans_sent += len(spans) - rejected
            if rejected:
                self._failed(rejected, "the collector rejected them")
            else:
                self._health.succeeded(_DESTINATION)

    def _rejected_of(self, response: bytes) -> int:
        try:
            return int(ExportTraceServiceResponse.FromString(response).partial_success.rejected_spans)
        except DecodeError:
            raise ExportFailed("the response is not OTLP: check otel.endpoint") from None

    def _failed(self, spans: int, reason: str) -> None:
        self._counters.otel_spans_failed += spans
        self._health.failed(_DESTINATION, reason)
        if self._reports.due(reason) is not None:
            self._log.error(
                "trace export failed",
                reason=reason,
                spans_lost_so_far=self._counters.otel_spans_failed,
            )
