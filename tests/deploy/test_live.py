"""A real Prometheus scrapes a proxy with good and bad producers, and every query has a result."""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from sluicegate.proxy.demo.sample_stream import SampleStream
from sluicegate.proxy.sandbox.mock_cluster import MockCluster
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess
from tests.deploy.manifests import documents_of_kind
from tests.deploy.prometheus import NEEDS_PROMETHEUS, NEEDS_PROMTOOL, Prometheus, promtool
from tests.deploy.queries import ALL, JOB, RULES, Query
from tests.deploy.test_kubernetes import render_chart

HOUR = 3_600_000
# The sample clients write to these topics: payments are rejected, telemetry is observed, orders.eu is compacted.
_POLICIES = {
    "defaults": {
        "message.timestamp.before.max.ms": "1d",
        "message.timestamp.after.max.ms": "1h",
        "owner": {"team": "platform"},
    },
    "client_owners": [{"client_id": "*", "owner": {"team": "producers"}}],
    "topics": [
        {"match": "telemetry", "mode": "observe"},
        {"match": "orders.*", "cleanup.policy": "compact"},
        {"match": "late", "fix": {"timestamp": "clamp"}},
        {
            "match": "ahead",
            "message.timestamp.after.max.ms": "7d",
            "rehearse": {"message.timestamp.after.max.ms": ["1h"]},
        },
    ],
}
_EMPTY_WHEN_WELL = {
    "dashboard: Paused connections by reason": "no connection is paused",
    "dashboard: Certificate time left": "TLS is not configured",
    "alert: SluicegateCertificateExpires": "TLS is not configured",
    "alert: SluicegateBrokerConnectSlow": "brokers accept connections at once",
    "dashboard: Broker errors by API": "the cluster has no access control",
    "dashboard: Throttles by quota": "there are no quotas",
    "dashboard: Throttle time by quota": "there are no quotas",
    "alert: SluicegateClientsThrottled": "there are no quotas",
    "alert: SluicegateDown": "it responds",
    "alert: SluicegateQuarantineArrivals": "nothing is quarantined",
    "rule: sluicegate:quarantined_batches:rate5m": "nothing is quarantined",
    "alert: SluicegateNotCompiled": "the record scan is compiled if a compiler was installed",
}
_EMPTY_HERE = {"quarantined_records": "nothing is quarantined"}


class WrongTimes:
    """A producer that continuously sends records two days old to `late` and records two hours ahead to `ahead`."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "client.id": "wrong-times", "log_level": 0})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.25):
            now = time.time_ns() // 1_000_000
            self._producer.produce("late", b"v", b"k", timestamp=now - 48 * HOUR)
            self._producer.produce("ahead", b"v", b"k", timestamp=now + 2 * HOUR)
            self._producer.flush(5)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy under load, in front of a cluster that validates nothing."""
    with ExitStack() as stack:
        cluster = MockCluster(3)
        upstream = {"bootstrap": cluster.bootstrap, "topic_settings": False}
        process = ProxyProcess(tmp_path_factory.mktemp("proxy"), "", _POLICIES | {"upstream": upstream})
        stack.callback(process.stop)
        process.start()
        for load in (SampleStream(process.bootstrap, lambda _client_id, _error: None), WrongTimes(process.bootstrap)):
            load.start()
            stack.callback(load.stop)
        yield process


def rules_in_use(folder: Path) -> Path:
    """Return the rules as the Helm chart installs them, or without helm the file itself."""
    if shutil.which("helm") is None:
        return RULES
    (rule,) = documents_of_kind(render_chart(folder, "--set", "prometheusRule.enabled=true"), "PrometheusRule")
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump(rule["spec"]))
    return file


@pytest.fixture(scope="module")
def prometheus(proxy: ProxyProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    server = Prometheus(folder, proxy.admin.removeprefix("http://"), rules_in_use(folder))
    try:
        yield server.start()
    finally:
        server.stop()


@NEEDS_PROMTOOL
def test_a_live_scrape_follows_prometheus_conventions(proxy: ProxyProcess) -> None:
    eventually(lambda: proxy.metric("sluicegate_rejected_batches_total") > 0, what="something is rejected")

    checked = promtool("check", "metrics", stdin=proxy.get("/metrics")[1])

    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.long
@NEEDS_PROMETHEUS
@pytest.mark.parametrize("query", ALL, ids=lambda query: query.where)
def test_every_query_returns_data(query: Query, prometheus: Prometheus) -> None:
    if query.where in _EMPTY_WHEN_WELL or any(name in query.text for name in _EMPTY_HERE):
        for text in query.to_ask:
            prometheus.ask(text)  # the query is valid nevertheless
        return
    for text in query.to_ask:
        eventually(lambda text=text: _has_data(prometheus, text), what=text)


@NEEDS_PROMETHEUS
def test_prometheus_evaluates_the_rules_and_sees_rejections(proxy: ProxyProcess, prometheus: Prometheus) -> None:
    pending = 'ALERTS{alertname="SluicegateRejecting",topic="payments"}'
    eventually(lambda: prometheus.ask(pending), what="an alert about payments")

    assert prometheus.rules_with_errors() == []
    (alert,) = prometheus.ask(pending)
    assert {name: alert["metric"][name] for name in ("alertstate", "client_id", "rule", "job")} == {
        "alertstate": "pending",
        "client_id": "legacy-billing",
        "rule": "timestamp_in_future",
        "job": "sluicegate",
    }


@NEEDS_PROMETHEUS
def test_a_proxy_that_does_not_respond_is_down(tmp_path: Path) -> None:
    server = Prometheus(tmp_path, f"127.0.0.1:{free_ports(1)}", RULES)
    try:
        server.start()
        down = 'ALERTS{alertname="SluicegateDown"}'
        (alert,) = eventually(lambda: server.ask(down), what="an alert")
    finally:
        server.stop()

    assert (alert["metric"]["job"], alert["metric"]["severity"]) == (JOB, "critical")


def test_a_scrape_counts_fixed_rejected_and_fallback_batches_apart(proxy: ProxyProcess) -> None:
    """Even without Prometheus, a scrape names clients, does not count fixed batches as rejected, and counts both
    paths."""
    for name in ("violations", "fixed_batches", "future_timestamp_batches", "observed_batches", "rehearsed_batches"):
        eventually(lambda name=name: proxy.metric(f"sluicegate_{name}_total") > 0, what=name)
    text = proxy.get("/metrics")[1]

    assert (
        'client_id="legacy-billing",mode="reject",outcome="rejected",rule="timestamp_in_future",topic="payments"'
        in text
    )
    assert 'client_id="wrong-times",mode="fix",outcome="accepted",rule="timestamp_too_old",topic="late"' in text
    assert 'sluicegate_validated_batches_total{outcome="accepted"} 0.0' not in text
    by_reason = [line for line in text.splitlines() if line.startswith("sluicegate_fallbacks_total{")]
    assert sum(float(line.rpartition(" ")[2]) for line in by_reason) > 0


def _has_data(prometheus: Prometheus, text: str) -> bool:
    return any(series["value"][1] not in ("NaN", "+Inf", "-Inf") for series in prometheus.ask(text))
