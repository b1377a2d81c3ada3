"""A real cluster's alerts are pending, firing and resolved in the right order, in real Prometheus and Alertmanager."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.deploy.alertmanager import NEEDS_ALERTMANAGER, Alertmanager, AlertNotice
from tests.deploy.prometheus import NEEDS_PROMETHEUS, Prometheus, shorten_alert_rules
from tests.deploy.queries import JOB, RULES, alert_rules
from tests.oracle.kafka_java import KAFKA_NEW

pytestmark = [pytest.mark.long, NEEDS_PROMETHEUS, NEEDS_ALERTMANAGER]

_TWO_DAYS_MS = 48 * 3_600_000
_CLUSTER = "west"
_OWNER = {"team": "team-payments"}
_POLICIES = {
    "defaults": {"message.timestamp.before.max.ms": "1d"},
    "topics": [
        {"match": "payments", "owner": _OWNER},
        {"match": "refunds", "owner": _OWNER, "quarantine": "dead"},
    ],
}
_REJECTING = "SluicegateRejecting"
_REJECTED_FILE = "SluicegateConfigRejected"
_QUARANTINE_FAILS = "SluicegateQuarantineFailing"
_QUARANTINED = "SluicegateQuarantineArrivals"
_BROKER = "SluicegateBrokerUnreachable"
_UPSTREAM = "SluicegateUpstreamUnreachable"
_DOWN = "SluicegateDown"
_EXPECTED = {_REJECTING, _REJECTED_FILE, _QUARANTINE_FAILS, _QUARANTINED, _BROKER, _UPSTREAM, _DOWN}
_OF_THIS_MACHINE = {  # the machine is busy or has no compiler
    *("SluicegateEventLoopDelayed", "SluicegateProxySlow", "SluicegateUpstreamSlow"),
    *("SluicegateBrokerConnectSlow", "SluicegateNotCompiled"),
}


class OldRecords:
    """A client that sends records that are two days old, twice a second, until it is stopped."""

    def __init__(self, bootstrap: str, client_id: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "client.id": client_id, "log_level": 0})
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.purge()

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            self._producer.produce(self._topic, b"v", timestamp=time.time_ns() // 1_000_000 - _TWO_DAYS_MS)
            self._producer.poll(0)


@dataclass(frozen=True)
class Installation:
    """Two brokers (the first is the controller), a proxy, a Prometheus that scrapes it, and an Alertmanager."""

    kafka: Kafka
    proxy: ProxyProcess
    prometheus: Prometheus
    alertmanager: Alertmanager


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with ExitStack() as stack:
        kafka = Kafka(KAFKA_NEW, tmp_path / "kafka", settings={"auto.create.topics.enable": "false"})
        stack.callback(kafka.stop)
        kafka.start()
        kafka.add_node()
        _create(kafka, "payments", "refunds")
        proxy = ProxyProcess(tmp_path, kafka.bootstrap, _POLICIES)
        stack.callback(proxy.stop)
        proxy.start()
        alertmanager = Alertmanager(tmp_path)
        stack.callback(alertmanager.stop)
        alertmanager.start()
        prometheus = Prometheus(
            tmp_path,
            proxy.admin.removeprefix("http://"),
            shorten_alert_rules(RULES, tmp_path),
            labels={"cluster": _CLUSTER},
            alertmanager=alertmanager.address,
        )
        stack.callback(prometheus.stop)
        prometheus.start()
        yield Installation(kafka, proxy, prometheus, alertmanager)


def test_alerts_fire_and_end_in_the_order_of_the_faults(installation: Installation) -> None:
    kafka, proxy, alertmanager = installation.kafka, installation.proxy, installation.alertmanager
    eventually(lambda: installation.prometheus.ask('sluicegate_condition{cluster="west"}'), what="a scrape")
    fires, wait_until_resolved = _waits(alertmanager)

    with OldRecords(proxy.bootstrap, "billing", "payments"):
        rejecting = fires(_REJECTING, client_id="billing", topic="payments", rule="timestamp_too_old")
        file = proxy.folder / "sluicegate.yaml"
        right = file.read_text()
        file.write_text(right + "listenn: {}\n")
        rejected_file = fires(_REJECTED_FILE)
        with OldRecords(proxy.bootstrap, "shop", "refunds"):
            failing = fires(_QUARANTINE_FAILS, subject="dead-letter topic dead")
            file.write_text(right)
            wait_until_resolved(_REJECTED_FILE)
            _create(kafka, "dead")
            wait_until_resolved(_QUARANTINE_FAILS)
            arrivals = fires(_QUARANTINED, client_id="shop", topic="refunds", rule="timestamp_too_old")
        wait_until_resolved(_QUARANTINED)
    wait_until_resolved(_REJECTING)

    controller, other = kafka.nodes
    kafka.kill(other)
    broker = fires(_BROKER, subject="broker 2")
    kafka.kill(controller)
    upstream = fires(_UPSTREAM, condition="upstream_unreachable", subject=kafka.bootstrap.replace(",", ", "))
    kafka.start_node(controller)
    wait_until_resolved(_UPSTREAM)
    wait_until_resolved(_BROKER, subject="broker 1")
    kafka.start_node(other)
    wait_until_resolved(_BROKER, subject="broker 2")

    proxy.kill()
    down = fires(_DOWN)
    proxy.start()
    wait_until_resolved(_DOWN)

    all_fired = [rejecting, rejected_file, failing, arrivals, broker, upstream, down]
    assert [each.name for each in sorted(all_fired, key=lambda each: each.starts_at)] == [e.name for e in all_fired]
    for each in (rejecting, arrivals):
        assert each.labels["owner"] == _OWNER["team"]
        assert "Owner: team-payments." in each.annotations["description"]
    for each in all_fired:
        assert each.labels["cluster"] == _CLUSTER
        assert (each.labels["instance"], each.labels["job"]) == (proxy.admin.removeprefix("http://"), JOB)
        assert each.annotations["runbook_url"].endswith(f"/docs/runbook.md#{each.name.lower()}")
        assert each.annotations["runbook_url"].startswith("https://")
    ended = [
        (each.name, each.labels.get("subject"))
        for each in alertmanager.notices
        if each.status == "resolved" and each.name in _EXPECTED
    ]
    both = slice(4, 6)  # these alerts end when the same broker returns
    ended[both] = sorted(ended[both])
    assert ended == [
        *(
            (_REJECTED_FILE, None),
            (_QUARANTINE_FAILS, "dead-letter topic dead"),
            (_QUARANTINED, None),
            (_REJECTING, None),
        ),
        *sorted([(_UPSTREAM, upstream.labels["subject"]), (_BROKER, "broker 1")]),
        *((_BROKER, "broker 2"), (_DOWN, None)),
    ]
    _was_pending_before_it_fired(installation.prometheus)


def _waits(alertmanager: Alertmanager) -> tuple[Callable[..., AlertNotice], Callable[..., AlertNotice]]:
    def wait_until_firing(name: str, **labels: str) -> AlertNotice:
        return alertmanager.wait_for("firing", alertname=name, **labels)

    def wait_until_resolved(name: str, **labels: str) -> AlertNotice:
        return alertmanager.wait_for("resolved", alertname=name, **labels)

    return wait_until_firing, wait_until_resolved


def _was_pending_before_it_fired(prometheus: Prometheus) -> None:
    """Check that every alert with a `for:` was pending first, and that no other alert fired."""
    began: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for series in prometheus.ask("ALERTS[30m]"):
        labels: dict[str, str] = series["metric"]
        state = labels.pop("alertstate")
        began.setdefault(tuple(sorted(labels.items())), {})[state] = series["values"][0][0]
    fired = [(dict(labels)["alertname"], times) for labels, times in began.items() if "firing" in times]
    waits = {rule["alert"] for rule in alert_rules() if "for" in rule}
    assert [name for name, times in fired if name in waits and times["pending"] >= times["firing"]] == []
    assert {name for name, _ in fired} - _OF_THIS_MACHINE == _EXPECTED


def _create(kafka: Kafka, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.nodes[0].address})
    for future in admin.create_topics([NewTopic(topic, 1, replica_assignment=[[1]]) for topic in topics]).values():
        future.result(30)
