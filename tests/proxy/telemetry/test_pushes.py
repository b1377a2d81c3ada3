"""Exports never block a caller, and failures are counted and logged."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from prometheus_client.core import GaugeMetricFamily
from structlog.testing import capture_logs

from sluicegate.config.otel import Otel
from sluicegate.config.tls import ServerTls
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.telemetry.collector import Collector
from sluicegate.proxy.telemetry.metric_push import MetricPush
from sluicegate.proxy.telemetry.request_traces import RequestSummary
from sluicegate.proxy.telemetry.span_push import SpanPush
from tests.broker.certificates import Authority
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.proxy.telemetry.otlp_receiver import OtlpCollector, running_collector, values_of

PROTOBUF = "application/x-protobuf"
NOW = 1_800_000_000_000
RESOURCE = Resource({"service.name": "test"})
SEEN = RequestSummary(
    ClientDetails("10.0.0.1:5", "c", None, None, None), ("t",), 1, 1, 1, -1, 9, "accepted", {}, None, 0, NOW, 0.1
)


@pytest.fixture
def collector() -> Iterator[OtlpCollector]:
    with running_collector() as made:
        yield made


def push_metrics_to(keys: Otel, counters: Counters) -> MetricPush:
    return MetricPush(
        lambda: [GaugeMetricFamily("now", "Now.", 5)], Collector(keys), RESOURCE, 0.05, counters, WriteHealth()
    )


def short_timeout_settings(collector: OtlpCollector) -> Otel:
    """Settings with a timeout that is too short for a second attempt."""
    return Otel(endpoint=collector.endpoint, timeout_seconds=0.5)


def push_spans_to(keys: Otel, counters: Counters) -> SpanPush:
    return SpanPush(Collector(keys), RESOURCE, counters, WriteHealth())


def test_failing_exports_are_reported_in_write_health() -> None:
    gone = Otel(endpoint=f"http://127.0.0.1:{free_ports(1)}", timeout_seconds=0.5)
    health = WriteHealth()
    metrics = MetricPush(
        lambda: [GaugeMetricFamily("now", "Now.", 5)], Collector(gone), RESOURCE, 60, Counters(), health
    )
    spans = SpanPush(Collector(gone), RESOURCE, Counters(), health)
    try:
        spans.keep(SEEN)
        eventually(lambda: set(health.failing()) == {"otel metrics", "otel traces"}, what="both failures")
    finally:
        metrics.close()
        spans.close()


def test_metrics_are_posted_to_their_path_with_headers_reread_from_the_file(
    collector: OtlpCollector, tmp_path: Path
) -> None:
    file, counters = tmp_path / "headers", Counters()
    file.write_text("authorization=Bearer%20one,x-tenant=a\n")
    with closing(push_metrics_to(Otel(endpoint=collector.endpoint + "/otlp/", headers_file=str(file)), counters)):
        eventually(lambda: collector.asked)
        file.write_text("authorization=Bearer%20two\n")
        eventually(lambda: collector.asked[-1][1]["authorization"] == "Bearer two")

    path, headers = collector.asked[0]
    assert (path, headers["content-type"]) == ("/otlp/v1/metrics", "application/x-protobuf")
    assert (headers["authorization"], headers["x-tenant"]) == ("Bearer one", "a")
    assert collector.metrics == {("now", frozenset()): 5}
    assert collector.resource == {"service.name": "test"}
    assert counters.otel_metrics_sent


def test_spans_are_retried_when_the_collector_asks_for_it(collector: OtlpCollector) -> None:
    collector.status, counters = 503, Counters()
    push = push_spans_to(Otel(endpoint=collector.endpoint), counters)
    push.keep(SEEN)
    eventually(lambda: collector.asked)
    collector.status = 200
    eventually(lambda: counters.otel_spans_sent)
    push.close()

    (span,) = collector.spans
    assert values_of(span.attributes)["sluicegate.outcome"] == "accepted"
    assert (counters.otel_spans_failed, counters.otel_spans_dropped) == (0, 0)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "the collector rejects the credentials (HTTP 401): check otel.headers or otel.headers_file"),
        (404, "the collector does not accept exports at /v1/metrics (HTTP 404): check otel.endpoint"),
        (400, "the collector rejects the export (HTTP 400)"),
        (503, "the collector asks to retry later (HTTP 503)"),
    ],
)
def test_a_rejecting_collector_is_logged_once_and_counted_each_time(
    collector: OtlpCollector, status: int, words: str
) -> None:
    collector.status, collector.answer, counters = status, b"<b>its own words</b>", Counters()
    with capture_logs() as lines, closing(push_metrics_to(short_timeout_settings(collector), counters)):
        eventually(lambda: counters.otel_metrics_failed >= 3)

    assert [line["reason"] for line in lines] == [words]


@pytest.mark.parametrize(
    ("kind", "answer", "sent"),
    [("application/json", b'{"partialSuccess":{}}', True), ("text/html", b"<p>hello", False), (PROTOBUF, b"{}", False)],
)
def test_response_with_unexpected_content_type_is_a_success_unless_html(
    collector: OtlpCollector, kind: str, answer: bytes, sent: bool
) -> None:
    collector.headers["content-type"], collector.answer, counters = kind, answer, Counters()
    with closing(push_metrics_to(Otel(endpoint=collector.endpoint), counters)):
        eventually(lambda: counters.otel_metrics_sent + counters.otel_metrics_failed)

    assert bool(counters.otel_metrics_sent) is sent


def test_spans_rejected_by_the_collector_count_as_failed(collector: OtlpCollector) -> None:
    answer, counters = ExportTraceServiceResponse(), Counters()
    answer.partial_success.rejected_spans = 1
    collector.answer = answer.SerializeToString()
    push = push_spans_to(Otel(endpoint=collector.endpoint), counters)
    push.keep(SEEN)
    push.keep(SEEN)
    push.close()

    assert (counters.otel_spans_sent, counters.otel_spans_failed) == (1, 1)


def _gone(listening: socket.socket) -> None:
    listening.close()


def _silent(_listening: socket.socket) -> None:
    pass


@pytest.mark.parametrize(("what", "words"), [(_gone, "Connection refused"), (_silent, "no response within 0.3 s")])
def test_a_collector_outage_blocks_no_caller_and_the_queue_is_bounded(
    what: Callable[[socket.socket], None], words: str
) -> None:
    counters = Counters()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        keys = Otel(endpoint=f"http://127.0.0.1:{listening.getsockname()[1]}", timeout_seconds=0.3)
        what(listening)
        with capture_logs() as lines:
            push = push_spans_to(keys, counters)
            began = time.thread_time()
            for _ in range(5000):
                push.keep(SEEN)
            took = time.thread_time() - began
            push.close()

    assert took < 1  # CPU time; waiting for each response separately would take 0.3 s
    assert lines[0]["reason"] == words
    assert len(lines) <= 4  # a shutdown has a shorter timeout
    assert counters.otel_spans_dropped >= 2500
    assert counters.otel_spans_failed + counters.otel_spans_dropped == 5000


def _drips(listening: socket.socket) -> None:
    peer, _ = listening.accept()
    with closing(peer), suppress(OSError):
        peer.sendall(b"HTTP/1.1 200 OK\r\nx: ")
        while True:
            peer.sendall(b"x")
            time.sleep(0.05)


def _floods(listening: socket.socket) -> None:
    peer, _ = listening.accept()
    with closing(peer), suppress(OSError):
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            peer.sendall(bytes(1 << 16))


@pytest.mark.parametrize(
    ("respond", "words"),
    [(_drips, "no response within 0.5 s"), (_floods, "the server sent a response of more than 65536 bytes")],
)
def test_collector_responses_are_limited_in_time_and_size(respond: Callable[[socket.socket], None], words: str) -> None:
    counters = Counters()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=respond, args=(listening,), daemon=True).start()
        keys = Otel(endpoint=f"http://127.0.0.1:{listening.getsockname()[1]}", timeout_seconds=0.5)
        with capture_logs() as lines, closing(push_metrics_to(keys, counters)):
            eventually(lambda: counters.otel_metrics_failed)

    assert lines[0]["reason"] == words


@pytest.mark.long
def test_collector_certificate_must_be_trusted(tmp_path: Path) -> None:
    authority, counters = Authority(tmp_path), Counters()
    certificate = authority.sign("collector", "localhost", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    with running_collector(context) as collector:
        with capture_logs() as lines, closing(push_metrics_to(Otel(endpoint=collector.endpoint), counters)):
            eventually(lambda: counters.otel_metrics_failed)
        assert "name its CA in tls.ca_file" in lines[0]["reason"]
        trusting = Otel(endpoint=collector.endpoint, tls=ServerTls(ca_file=str(authority.file)))
        with closing(push_metrics_to(trusting, counters)):
            eventually(lambda: counters.otel_metrics_sent)
