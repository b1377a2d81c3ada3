"""Each condition of a proxy in front of real brokers begins, is shown everywhere, and ends, within ten seconds."""

import os
import signal
import socket
import struct
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from sluicegate.protocol.headers import build_request_header
from tests.broker.certificates import Authority
from tests.broker.eventually import eventually
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.condition_views import (
    PAGE_MS,
    PICTURES,
    active_condition_details,
    wait_until_begun,
    wait_until_condition_ended,
)
from tests.integration.secure_brokers import GuardedBroker, proxy_for
from tests.integration.strict_broker import create_topic_on_node
from tests.integration.test_produce import leader_of
from tests.integration.test_quarantine import produce_and_wait, raw_client_of
from tests.integration.test_workers import children_of, workers_of
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW
from tests.proxy.cli.test_commands import sluicegate_process
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.long

_UNREGISTER_BROKER = 64
INVALID_TIMESTAMP = 32
_SHIFTED_CLOCK = """from pathlib import Path
from sluicegate.proxy.server import clock
right = clock.now_ms
clock.now_ms = lambda: right() - (7_200_000 if Path({mark!r}).exists() else 0)
from sluicegate.proxy.cli.main import main
main()"""


def test_an_unwritable_quarantine_topic_is_a_condition_until_it_can_be_written(
    strict_kafka: Kafka, tmp_path: Path, web_ui: "Page | None"
) -> None:
    topic, dead = (f"{kind}-{uuid.uuid4().hex[:8]}" for kind in ("kept", "dead"))
    create_topic_on_node(strict_kafka, 1, topic)
    settings = {"defaults": DEFAULTS, "topics": [{"match": topic, "quarantine": dead}]}
    proxy = ProxyProcess(tmp_path, strict_kafka.nodes[0].address, settings)
    done = threading.Event()

    def send() -> None:
        with raw_client_of(proxy) as client:
            while produce_and_wait(client, topic, batch([Rec(0)]))["error_code"] != INVALID_TIMESTAMP:
                pass
        done.set()

    producer = threading.Thread(target=send, daemon=True)
    try:
        proxy.start()
        began = time.monotonic()
        producer.start()
        detail = wait_until_begun(proxy, "quarantine_failing", web_ui)
        assert detail.startswith(f"dead-letter topic {dead}: ")
        assert proxy.get("/readyz")[0] == 200
        eventually(lambda: '"quarantine write"' in proxy.get("/api/live")[1], 30, "a connection that says why it waits")
        assert not done.is_set(), time.monotonic() - began
        assert f"; 1 client waits (raw from 127.0.0.1), topic {topic}" in detail
        _is_shown_as_retrying(proxy, topic, dead, web_ui)

        create_topic_on_node(strict_kafka, 1, dead)
        assert done.wait(60)
        wait_until_condition_ended(proxy, "quarantine_failing")
        assert proxy.get("/readyz") == (200, "serving\n")
    finally:
        proxy.stop()
        producer.join(10)


def _is_shown_as_retrying(proxy: ProxyProcess, topic: str, dead: str, page: "Page | None") -> None:
    """Check that `who`, `top`, the API and the web UI show a client that retries without success."""
    retrying = "cannot be stored, retrying"
    eventually(
        lambda: '"copies": "not_stored"' in proxy.get("/api/live")[1], 60, "a batch that is sent again in the live view"
    )
    address = proxy.admin.removeprefix("http://")
    who, top = (
        sluicegate_process(*view).stdout for view in (["who", topic, "--admin", address], ["top", "--once", address])
    )
    assert retrying in who
    assert f"its bad records cannot be stored in dead-letter topic {dead}: " in who
    assert "retrying" in top
    if page is not None:
        page.set_viewport_size({"width": 1280, "height": 900})
        for place in ("#/clients", "#/topics", "#/client?id=raw", f"#/topic?name={topic}", "#/violations"):
            page.goto(f"{proxy.admin}/{place}")
            page.wait_for_selector(f"td:has-text('{retrying}')", timeout=PAGE_MS)
            name = place.strip("#/").partition("?")[0]
            page.screenshot(path=PICTURES / f"quarantine_failing-{name}.png")


def test_a_quarantine_success_of_one_worker_ends_the_failure_of_an_idle_one(
    strict_kafka: Kafka, tmp_path: Path
) -> None:
    """A successful write of one worker ends the failure that the other worker reported last."""
    topic, dead = (f"{kind}-{uuid.uuid4().hex[:8]}" for kind in ("kept", "dead"))
    create_topic_on_node(strict_kafka, 1, topic)
    settings = {"defaults": DEFAULTS, "topics": [{"match": topic, "quarantine": dead}], "workers": 2}
    proxy = ProxyProcess(tmp_path, strict_kafka.nodes[0].address, settings)

    def send() -> None:
        with raw_client_of(proxy) as client:
            produce_and_wait(client, topic, batch([Rec(0)]))

    try:
        proxy.start()
        producers = [threading.Thread(target=send, daemon=True) for _ in range(16)]
        for producer in producers:
            producer.start()
        eventually(lambda: "quarantine_failing" in active_condition_details(proxy), 30, "the condition")
        for producer in producers:
            producer.join(60)
        create_topic_on_node(strict_kafka, 1, dead)
        with raw_client_of(proxy) as client:
            eventually(lambda: produce_and_wait(client, topic, batch([Rec(0)]))["error_code"] == INVALID_TIMESTAMP)
        stored = time.monotonic()
        eventually(lambda: "quarantine_failing" not in active_condition_details(proxy), 60, "the end of the condition")
        assert time.monotonic() - stored < 15
    finally:
        proxy.stop()


def test_a_killed_broker_is_a_condition_until_it_is_started_again(
    cluster: Kafka, tmp_path: Path, web_ui: "Page | None"
) -> None:
    node = cluster.nodes[2]
    name = f"broker {node.node_id}"
    proxy = ProxyProcess(tmp_path, cluster.bootstrap, {"upstream": {"bootstrap": cluster.bootstrap.split(",")}})

    def broker_states() -> dict[str, str]:
        return {broker["name"]: broker["state"] for broker in yaml.safe_load(proxy.get("/api/live")[1])["brokers"]}

    try:
        proxy.start()
        eventually(lambda: broker_states().get(name) == "reachable", 30, "a probe of each broker")
        cluster.kill(node)
        detail = wait_until_begun(proxy, "broker_unreachable", web_ui)
        assert detail.startswith(f"{name} at {node.address}: ")
        assert proxy.get("/readyz")[0] == 200
        assert {each for each, state in broker_states().items() if state == "unreachable"} == {name}

        cluster.start_node(node)
        cluster.wait_until_up(node)
        wait_until_condition_ended(proxy, "broker_unreachable")
        assert broker_states()[name] == "reachable"
    finally:
        proxy.stop()


def test_a_controller_as_upstream_is_reported_as_not_a_broker(
    strict_kafka: Kafka, tmp_path: Path, web_ui: "Page | None"
) -> None:
    controller = f"127.0.0.1:{strict_kafka.nodes[0].controller_port}"
    proxy = ProxyProcess(tmp_path, controller)
    try:
        proxy.start(ready=False)
        wait_until_begun(proxy, "upstream_not_a_broker", web_ui)
        status, text = proxy.get("/readyz")
        assert status == 503
        assert text.startswith(f"not serving\nupstream_not_a_broker: upstream is not a Kafka broker: {controller}: ")
        assert "is a KRaft controller, not a broker" in text
        file = tmp_path / "sluicegate.yaml"
        command = ["doctor", "--config", str(file)]
        examined = sluicegate_process(*command)
        assert examined.returncode == 2
        assert "is a KRaft controller, not a broker" in examined.stdout
    finally:
        proxy.stop()


def _folder_vanishes(file: Path) -> Callable[[], None]:
    file.parent.rename(file.parent.with_name("moved"))
    return file.parent.mkdir


def _disk_is_full(file: Path) -> Callable[[], None]:
    link = file.with_suffix(".full")
    link.symlink_to("/dev/full")
    link.replace(file)
    return file.unlink


@pytest.mark.parametrize(
    ("fault", "said"),
    [(_folder_vanishes, "No such file or directory"), (_disk_is_full, "No space left on device")],
    ids=["folder", "disk"],
)
def test_unwritable_events_are_a_condition_until_they_can_be_written(
    kafka_bootstrap: str, tmp_path: Path, web_ui: "Page | None", fault: Callable[[Path], Callable[[], None]], said: str
) -> None:
    file = tmp_path / "events" / "violations.jsonl"
    file.parent.mkdir()
    settings = {"defaults": DEFAULTS, "violations": {"file": str(file)}}
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, settings)
    done = threading.Event()

    def send() -> None:
        with RawClient(leader_of(proxy, topic)) as client:
            while not done.wait(0.2):
                client.produce(9, [topic_data(topic, (0, batch([Rec(0)])))])

    producer = threading.Thread(target=send, daemon=True)
    try:
        proxy.start()
        producer.start()
        proxy.wait_for_violations(topic, 1)
        corrected = fault(file)
        detail = wait_until_begun(proxy, "events_lost", web_ui)
        assert detail == f"violations.file {file}: {said}"
        assert proxy.get("/readyz")[0] == 200

        corrected()
        wait_until_condition_ended(proxy, "events_lost")
    finally:
        done.set()
        producer.join(10)
        proxy.stop()


def test_a_clock_two_hours_behind_is_a_condition_until_it_is_corrected(
    kafka_bootstrap: str, tmp_path: Path, web_ui: "Page | None"
) -> None:
    mark = tmp_path / "wrong"
    proxy = ProxyProcess(tmp_path, kafka_bootstrap)
    proxy.command = [sys.executable, "-c", _SHIFTED_CLOCK.format(mark=str(mark))]
    try:
        proxy.start()
        eventually(lambda: "sluicegate_clock_offset_seconds " in proxy.get("/metrics")[1], 30, "an offset")
        assert abs(proxy.metric("sluicegate_clock_offset_seconds")) < 5
        mark.touch()
        detail = wait_until_begun(proxy, "clock_offset", web_ui)
        assert " s behind that of the active controller" in detail
        eventually(lambda: -7205 < proxy.metric("sluicegate_clock_offset_seconds") < -7195, what="two hours")

        mark.unlink()
        wait_until_condition_ended(proxy, "clock_offset")
    finally:
        proxy.stop()


def test_an_http_server_as_upstream_is_reported_as_not_a_broker(tmp_path: Path, web_ui: "Page | None") -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        proxy = ProxyProcess(tmp_path, f"127.0.0.1:{server.server_port}")
        try:
            proxy.start(ready=False)
            detail = wait_until_begun(proxy, "upstream_not_a_broker", web_ui)
            assert f"127.0.0.1:{server.server_port}" in detail
            assert "HTTP" in detail
        finally:
            proxy.stop()
            server.shutdown()


def test_an_unreachable_cluster_is_a_condition_until_it_responds(tmp_path: Path, web_ui: "Page | None") -> None:
    with ExitStack() as stack:
        kafka = Kafka(KAFKA_NEW, tmp_path / "kafka")
        stack.callback(kafka.stop)
        kafka.start()
        proxy = ProxyProcess(tmp_path, kafka.bootstrap)
        stack.callback(proxy.stop)
        proxy.start()
        (node,) = kafka.nodes
        kafka.kill(node)
        detail = wait_until_begun(proxy, "upstream_unreachable", web_ui)
        assert node.address in detail

        kafka.start_node(node)
        kafka.wait_until_up(node)
        wait_until_condition_ended(proxy, "upstream_unreachable")
        eventually(lambda: proxy.get("/readyz") == (200, "serving\n"), 30, "no other condition")


def _unregister(kafka: Kafka) -> None:
    """Unregister the broker from the cluster while it runs (KIP-631: UnregisterBroker v0)."""
    with RawClient(kafka.bootstrap) as client:
        client.send_frame(
            build_request_header(_UNREGISTER_BROKER, 0, 1, "raw", 2) + struct.pack(">ib", kafka.nodes[0].node_id, 0)
        )
        assert isinstance(client.receive(), bytes)
        eventually(lambda: client.metadata()["brokers"] == [], what="Metadata without a broker")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_cluster_that_lists_no_broker_is_a_condition_until_it_lists_one(
    tmp_path: Path, web_ui: "Page | None", workers: int
) -> None:
    with ExitStack() as stack:
        kafka = Kafka(KAFKA_NEW, tmp_path / "kafka")
        stack.callback(kafka.stop)
        kafka.start()
        proxy = ProxyProcess(tmp_path, kafka.bootstrap, {"workers": workers})
        stack.callback(proxy.stop)
        proxy.start()
        assert proxy.metric("sluicegate_ready") == 1
        _unregister(kafka)
        detail = wait_until_begun(proxy, "no_broker_listed", web_ui)
        assert detail.startswith(f"{kafka.bootstrap} responds, but lists no broker")
        assert proxy.get("/readyz")[0] == 503
        assert proxy.metric("sluicegate_ready") == 0
        examined = sluicegate_process("doctor", "--config", str(proxy.folder / "sluicegate.yaml"))
        assert examined.returncode == 1
        assert "responds, but lists no broker" in " ".join(examined.stdout.split())

        kafka.add_node()
        wait_until_condition_ended(proxy, "no_broker_listed")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_taken_broker_port_is_a_condition_until_it_is_free(
    cluster: Kafka, tmp_path: Path, web_ui: "Page | None", workers: int
) -> None:
    settings = {"upstream": {"bootstrap": cluster.bootstrap.split(",")}, "workers": workers}
    proxy = ProxyProcess(tmp_path, cluster.bootstrap, settings)
    try:
        with socket.create_server(("127.0.0.1", proxy.broker_port(cluster.nodes[2].node_id))):
            proxy.start()
            detail = wait_until_begun(proxy, "broker_port_closed", web_ui)
            assert detail.startswith(f"broker {cluster.nodes[2].node_id}: the broker's port cannot be bound: ")
            assert proxy.get("/readyz")[0] == 200
            assert proxy.metric("sluicegate_ready") == 1
        wait_until_condition_ended(proxy, "broker_port_closed")
    finally:
        proxy.stop()


def test_a_broker_without_any_free_port_closes_the_proxy_until_one_is_free(
    kafka_bootstrap: str, tmp_path: Path, web_ui: "Page | None"
) -> None:
    proxy = ProxyProcess(tmp_path, kafka_bootstrap)
    try:
        with socket.create_server(("127.0.0.1", proxy.broker_port(1))):
            proxy.start(ready=False)
            wait_until_begun(proxy, "listener_closed", web_ui)
            assert proxy.metric("sluicegate_ready") == 0
        wait_until_condition_ended(proxy, "listener_closed")
    finally:
        proxy.stop()


def test_a_broker_that_advertises_the_proxys_own_address_is_a_condition(tmp_path: Path, web_ui: "Page | None") -> None:
    kafka = Kafka(KAFKA_NEW, tmp_path / "kafka", relay_host="127.0.0.2")
    with closing(run_kafka(kafka)) as brokers:
        port = next(brokers).nodes[0].relayed_port
        proxy = ProxyProcess(tmp_path, f"127.0.0.1:{port}")
        listen = proxy.config["listen"]
        del listen["broker_port_base"]
        listen |= {"bootstrap": f"127.0.0.2:{proxy.bootstrap.rpartition(':')[2]}", "broker_port_map": {1: port}}
        try:
            proxy.start(ready=False)
            assert wait_until_begun(proxy, "routing_loop", web_ui).startswith(
                f"the cluster lists broker 1 at 127.0.0.2:{port}, which is this proxy's own listener"
            )
            assert proxy.metric("sluicegate_ready") == 0
        finally:
            proxy.stop()


def test_a_killed_worker_is_a_condition_for_a_minute(
    kafka_bootstrap: str, tmp_path: Path, web_ui: "Page | None"
) -> None:
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"workers": 2})
    try:
        proxy.start()
        os.kill(workers_of(proxy)[0], signal.SIGKILL)
        wait_until_begun(proxy, "worker_restarted", web_ui)
        assert proxy.get("/readyz")[0] == 200
    finally:
        proxy.stop()


def _is_started_again(proxy: ProxyProcess) -> None:
    """Kill the process that forks workers. A log line reports this, the workers continue, and a new worker can
    start."""
    assert proxy.process is not None
    before = workers_of(proxy)
    (launcher,) = [child for child in children_of(proxy.process.pid) if children_of(child)]
    os.kill(launcher, signal.SIGKILL)
    assert '"code": 9' in proxy.wait_for_line("worker launcher ended, restarting")
    os.kill(before[0], signal.SIGKILL)
    eventually(lambda: len(workers_of(proxy)) == 1, 60, "another worker of another launcher")
    eventually(lambda: proxy.metric("sluicegate_workers") == 3, 60, "three workers")
    for worker in before[1:]:
        os.kill(worker, signal.SIGTERM)
    eventually(lambda: len(workers_of(proxy)) == 3, 60, "workers of the new launcher alone")
    eventually(lambda: proxy.metric("sluicegate_workers") == 3, 60, "three workers")


def test_a_stopped_worker_is_a_condition_until_it_continues(
    kafka_bootstrap: str, tmp_path: Path, web_ui: "Page | None"
) -> None:
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"workers": 3})
    try:
        proxy.start()
        stopped = workers_of(proxy)[1]
        os.kill(stopped, signal.SIGSTOP)
        try:
            detail = wait_until_begun(proxy, "worker_unresponsive", web_ui)
            assert f"(process {stopped}) has not reported for more than 5 s" in detail
            end = time.monotonic() + 12  # until the supervisor would treat the process as stuck
            while time.monotonic() < end:
                assert proxy.get("/livez") == (200, "ok\n")
                assert proxy.get("/readyz")[0] == 200
                time.sleep(0.5)
        finally:
            os.kill(stopped, signal.SIGCONT)
        wait_until_condition_ended(proxy, "worker_unresponsive")
        eventually(lambda: proxy.get("/readyz") == (200, "serving\n"), 30, "no other condition")

        _is_started_again(proxy)
        workers = workers_of(proxy)
        try:
            for worker in workers:
                os.kill(worker, signal.SIGSTOP)
            eventually(lambda: proxy.get("/livez")[0] == 503, 30, "a proxy that is to be restarted")
            assert "event_loop_stuck" in active_condition_details(proxy)
        finally:
            for worker in workers:
                os.kill(worker, signal.SIGKILL)  # a stopped process does not notice the end of its parent
    finally:
        proxy.stop()


def test_a_very_large_node_id_behind_a_host_name_is_served_and_shown(tmp_path: Path) -> None:
    with ExitStack() as stack:
        kafka = Kafka(KAFKA_NEW, tmp_path / "kafka")
        stack.callback(kafka.stop)
        kafka.start()
        own = Authority(tmp_path).sign("sluicegate", "*.brokers.test", "bootstrap.test")
        proxy = ProxyProcess(tmp_path, kafka.bootstrap)
        stack.callback(proxy.stop)
        listen = proxy.config["listen"]
        del listen["broker_port_base"]
        listen |= {
            "tls": own.files,
            "broker_host": "broker-{node_id}.brokers.test",
            "advertised_host": "bootstrap.test",
        }
        proxy.start()
        kafka.add_node(2_000_000_000)

        def shown_brokers() -> dict[str, tuple[str, str]]:
            brokers = yaml.safe_load(proxy.get("/api/live")[1])["brokers"]
            return {broker["name"]: (broker["state"], str(broker["listener"])) for broker in brokers}

        name = "broker 2000000000"
        eventually(lambda: shown_brokers().get(name, ("",))[0] == "reachable", 60, f"{name} is reachable")
        assert shown_brokers()[name][1].startswith("broker-2000000000.brokers.test:")
        assert proxy.get("/readyz") == (200, "serving\n")


def _spoil(file: Path) -> None:
    file.write_text(file.read_text() + "listenn: {}\n")


@pytest.mark.parametrize(
    ("condition", "fault", "said"),
    [
        ("configuration_missing", Path.unlink, "sluicegate.yaml"),
        ("configuration_rejected", _spoil, "listenn: no such key; did you mean listen?"),
    ],
)
def test_a_missing_or_invalid_file_is_a_condition_until_it_is_fixed(
    kafka_bootstrap: str,
    tmp_path: Path,
    web_ui: "Page | None",
    condition: str,
    fault: Callable[[Path], None],
    said: str,
) -> None:
    proxy = ProxyProcess(tmp_path, kafka_bootstrap)
    try:
        file = proxy.start().folder / "sluicegate.yaml"
        right = file.read_text()
        fault(file)
        assert said in wait_until_begun(proxy, condition, web_ui)

        file.write_text(right)
        wait_until_condition_ended(proxy, condition)
        assert proxy.get("/readyz") == (200, "serving\n")
    finally:
        proxy.stop()


def test_a_missing_login_at_a_cluster_that_requires_one_is_a_condition(
    guarded: GuardedBroker, tmp_path: Path, web_ui: "Page | None"
) -> None:
    proxy = proxy_for(guarded, tmp_path)
    del proxy.config["upstream"]["sasl"]
    try:
        proxy.start()
        wait_until_begun(proxy, "proxy_login_missing", web_ui)
    finally:
        proxy.stop()
