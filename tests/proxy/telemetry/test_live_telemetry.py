"""Two workers and a real producer report to independent collectors: the figures equal those of /metrics, and spans name
the client.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from sluicegate.proxy.sandbox.mock_cluster import MockCluster
from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess
from tests.oracle.kafka_java import ROOT
from tests.proxy.telemetry.otlp_receiver import Series, running_collector, values_of

HERE = Path(__file__).parent
COLLECTOR = ROOT / ".collector/otelcol"
MOVES_BY_ITSELF = (
    "sluicegate_cluster_probes",
    "sluicegate_cpu_seconds",
    "sluicegate_event_loop_delay_seconds",
    "sluicegate_otel_metric_exports",
    "sluicegate_resident_memory_bytes",
)


@contextmanager
def two_workers(folder: Path, endpoint: str) -> Iterator[ProxyProcess]:
    cluster = MockCluster(1)
    bounds = {"message.timestamp.before.max.ms": "1d", "message.timestamp.after.max.ms": "1h"}
    otel = {"endpoint": endpoint, "metrics_interval_seconds": 0.2}
    settings = {"workers": 2, "defaults": bounds, "otel": otel, "upstream": {"bootstrap": list(cluster.bootstrap)}}
    proxy = ProxyProcess(folder, ",".join(cluster.bootstrap), settings)
    try:
        yield proxy.start()
    finally:
        proxy.stop()


def send(proxy: ProxyProcess, client_id: str, *timestamps: int) -> None:
    """Send each record in its own batch with a new producer."""
    producer = Producer({"bootstrap.servers": proxy.bootstrap, "client.id": client_id, "linger.ms": 0, "log_level": 0})
    for timestamp in timestamps:
        producer.produce("payments", b"v", b"k", timestamp=timestamp)
        assert producer.flush(60) == 0
    producer.close()


def scraped_series(proxy: ProxyProcess) -> Series:
    families = list(text_string_to_metric_families(proxy.get("/metrics")[1]))
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def stable_series(series: Series) -> Series:
    return {
        (name, frozenset((key, str(float(value)) if key == "le" else value) for key, value in labels)): value
        for (name, labels), value in series.items()
        if not name.startswith(MOVES_BY_ITSELF)
    }


def test_exported_metrics_equal_the_scrape_and_spans_describe_rejected_requests(tmp_path: Path) -> None:
    with running_collector() as collector, two_workers(tmp_path, collector.endpoint) as proxy:
        now = time.time_ns() // 1_000_000
        send(proxy, "honest", now, now)
        send(proxy, "in-nanoseconds", now * 1_000_000)
        eventually(lambda: proxy.metric("sluicegate_open_connections") == 0)

        eventually(
            lambda: stable_series(collector.metrics) == stable_series(scraped_series(proxy)), what="equal figures"
        )

        def client_ids_of_spans() -> set[object]:
            return {values_of(span.attributes)["messaging.client.id"] for span in list(collector.spans)}

        eventually(lambda: client_ids_of_spans() == {"honest", "in-nanoseconds"}, what="spans of both")
        eventually(lambda: proxy.metric("sluicegate_otel_spans_total") == len(collector.spans), what="all spans")

        assert {name for name, _ in collector.metrics} == {name for name, _ in scraped_series(proxy)}
        assert sum(v for (name, _), v in collector.metrics.items() if name == "sluicegate_rejected_batches_total") == 1
        assert collector.resource["service.name"] == "sluicegate"
        spans = [values_of(span.attributes) for span in collector.spans]
        (rejected,) = [span for span in spans if span["sluicegate.outcome"] == "rejected"]
        assert {
            "messaging.client.id": "in-nanoseconds",
            "messaging.destination.name": "payments",
            "error.type": "INVALID_TIMESTAMP",
        }.items() <= rejected.items()
        assert "nanoseconds" in rejected["sluicegate.problem.diagnosis"]
        assert all(span["sluicegate.upstream_seconds"] > 0 for span in spans)


@pytest.mark.long
def test_unreachable_collector_is_logged_and_counted_and_delays_no_producer(tmp_path: Path) -> None:
    nobody = f"http://127.0.0.1:{free_ports(1)}"
    with two_workers(tmp_path, nobody) as proxy:
        send(proxy, "honest", *[time.time_ns() // 1_000_000] * 5)

        line = proxy.wait_for_line("metric export failed")
        assert "Connection refused" in line
        eventually(lambda: proxy.metric("sluicegate_otel_metric_exports_total") >= 3)
        assert proxy.log().count("metric export failed") == 1
        assert "Failed to export" not in proxy.log()  # the SDK logs one line for each attempt
        proxy.terminate()
        assert proxy.process is not None
        assert proxy.process.wait(60) == 0


@pytest.mark.skipif(not COLLECTOR.exists(), reason="no OpenTelemetry Collector: scripts/clients collector")
def test_an_opentelemetry_collector_accepts_metrics_and_spans(tmp_path: Path) -> None:
    endpoint = f"127.0.0.1:{free_ports(1)}"
    configuration, printed = tmp_path / "collector.yaml", tmp_path / "printed"
    configuration.write_text((HERE / "collector/collector.yaml").read_text().replace("ENDPOINT", endpoint))
    with printed.open("wb") as file:
        collector = subprocess.Popen(
            killed_with_parent([str(COLLECTOR), "--config", f"file:{configuration}"]), stderr=file
        )
    try:
        eventually(lambda: "Everything is ready" in printed.read_text(), what="a collector")
        with two_workers(tmp_path, f"http://{endpoint}") as proxy:
            send(proxy, "in-nanoseconds", time.time_ns())
            eventually(lambda: "Name           : produce payments" in printed.read_text(), what="a span")
            eventually(lambda: proxy.metric("sluicegate_otel_metric_exports_total") >= 2)

            assert "failed" not in {
                dict(labels).get("result") for (name, labels), v in scraped_series(proxy).items() if v
            }
    finally:
        collector.terminate()
        collector.wait(60)
    text = printed.read_text()
    assert "sluicegate.verdict: Str(rejected)" in text
    assert "messaging.client.id: Str(in-nanoseconds)" in text
    assert "Name: sluicegate_rejected_batches\n" in text
    assert "ExplicitBounds #15: 10.000000" in text
