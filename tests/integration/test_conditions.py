"""Conditions of a proxy in front of real brokers: each begins, is shown everywhere, and ends, within ten seconds."""

import re
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest
import yaml

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import COMMAND, ProxyProcess
from tests.integration.strict_broker import topic_on
from tests.integration.test_produce import leader_of
from tests.integration.test_quarantine import client_of, patient
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = pytest.mark.long

_WITHIN_SECONDS = 10
_FOR_A_BUSY_MACHINE = 20
INVALID_TIMESTAMP = 32
_SHIFTED_CLOCK = """from pathlib import Path
from sluicegate.proxy.server import clock
right = clock.now_ms
clock.now_ms = lambda: right() - (7_200_000 if Path({mark!r}).exists() else 0)
from sluicegate.proxy.cli.main import main
main()"""


def conditions(proxy: ProxyProcess) -> dict[str, str]:
    """Return the details of the active conditions."""
    lines = proxy.get("/readyz")[1].splitlines()[1:]
    return dict(line.split(": ", 1) for line in lines)


def begins(proxy: ProxyProcess, condition: str) -> str:
    """Wait for a condition, check that every view shows it, and return its detail."""
    seconds = _WITHIN_SECONDS + _FOR_A_BUSY_MACHINE
    detail = eventually(lambda: conditions(proxy).get(condition), seconds, condition)
    assert re.search(
        rf'^sluicegate_condition{{condition="{condition}",subject=".*"}} 1\.0$', proxy.get("/metrics")[1], re.M
    )
    assert f'"condition": "{condition}"' in proxy.get("/api/live")[1]
    address = proxy.admin.removeprefix("http://")
    for view in (["top", "--once", address], ["who", "a-topic", "--admin", address]):
        shown = subprocess.run([COMMAND, *view], capture_output=True, text=True, timeout=60, check=False)
        assert detail[:20] in " ".join((shown.stdout + shown.stderr).split()), shown
    proxy.wait_for_line("condition began")
    return detail


def ends(proxy: ProxyProcess, condition: str) -> None:
    eventually(lambda: condition not in conditions(proxy), _WITHIN_SECONDS + _FOR_A_BUSY_MACHINE, f"no {condition}")
    proxy.wait_for_line("condition ended")


def test_a_quarantine_that_cannot_be_written(strict_kafka: Kafka, tmp_path: Path) -> None:
    topic, dead = (f"{kind}-{uuid.uuid4().hex[:8]}" for kind in ("kept", "dead"))
    topic_on(strict_kafka, 1, topic)
    settings = {"defaults": DEFAULTS, "topics": [{"match": topic, "quarantine": dead}]}
    proxy = ProxyProcess(tmp_path, strict_kafka.nodes[0].address, settings)
    done = threading.Event()

    def send() -> None:
        with client_of(proxy) as client:
            while patient(client, topic, batch([Rec(0)]))["error_code"] != INVALID_TIMESTAMP:
                pass
        done.set()

    producer = threading.Thread(target=send, daemon=True)
    try:
        proxy.start()
        began = time.monotonic()
        producer.start()
        detail = begins(proxy, "quarantine_failing")
        assert detail.startswith(f"dead-letter topic {dead}: ")
        assert proxy.get("/readyz")[0] == 200
        eventually(lambda: '"quarantine write"' in proxy.get("/api/live")[1], 30, "a connection that says why it waits")
        assert not done.is_set(), time.monotonic() - began

        topic_on(strict_kafka, 1, dead)
        assert done.wait(60)
        ends(proxy, "quarantine_failing")
        assert proxy.get("/readyz") == (200, "serving\n")
    finally:
        proxy.stop()
        producer.join(10)


def test_a_broker_that_is_killed_and_started_again(cluster: Kafka, tmp_path: Path) -> None:
    node = cluster.nodes[2]
    name = f"broker {node.node_id}"
    proxy = ProxyProcess(tmp_path, cluster.bootstrap, {"upstream": {"bootstrap": cluster.bootstrap.split(",")}})

    def states() -> dict[str, str]:
        return {broker["name"]: broker["state"] for broker in yaml.safe_load(proxy.get("/api/live")[1])["brokers"]}

    try:
        proxy.start()
        eventually(lambda: states().get(name) == "reachable", 30, "a probe of each broker")
        cluster.kill(node)
        detail = begins(proxy, "broker_unreachable")
        assert detail.startswith(f"{name} at {node.address}: ")
        assert proxy.get("/readyz")[0] == 200
        assert {each for each, state in states().items() if state == "unreachable"} == {name}

        cluster.start_node(node)
        cluster.wait_until_up(node)
        ends(proxy, "broker_unreachable")
        assert states()[name] == "reachable"
    finally:
        proxy.stop()


def test_a_controller_as_upstream(strict_kafka: Kafka, tmp_path: Path) -> None:
    controller = f"127.0.0.1:{strict_kafka.nodes[0].controller_port}"
    proxy = ProxyProcess(tmp_path, controller)
    try:
        proxy.start(ready=False)
        eventually(lambda: "upstream_not_a_broker" in conditions(proxy), 30, "the condition")
        status, text = proxy.get("/readyz")
        assert status == 503
        assert text.startswith(f"not serving\nupstream_not_a_broker: upstream is not a Kafka broker: {controller}: ")
        assert "is a KRaft controller, not a broker" in text
        file = tmp_path / "sluicegate.yaml"
        command = [COMMAND, "doctor", "--config", str(file)]
        examined = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert examined.returncode == 2
        assert "is a KRaft controller, not a broker" in examined.stdout
    finally:
        proxy.stop()


def test_events_that_cannot_be_written(kafka_bootstrap: str, tmp_path: Path) -> None:
    folder, moved = tmp_path / "events", tmp_path / "moved"
    folder.mkdir()
    settings = {"defaults": DEFAULTS, "violations": {"file": str(folder / "violations.jsonl")}}
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
        folder.rename(moved)
        detail = begins(proxy, "events_lost")
        assert detail == f"violations.file {folder / 'violations.jsonl'}: No such file or directory"
        assert proxy.get("/readyz")[0] == 200

        folder.mkdir()
        ends(proxy, "events_lost")
    finally:
        done.set()
        producer.join(10)
        proxy.stop()


def test_a_clock_two_hours_behind_the_clusters(kafka_bootstrap: str, tmp_path: Path) -> None:
    mark = tmp_path / "wrong"
    proxy = ProxyProcess(tmp_path, kafka_bootstrap)
    proxy.command = [sys.executable, "-c", _SHIFTED_CLOCK.format(mark=str(mark))]
    try:
        proxy.start()
        eventually(lambda: "sluicegate_clock_offset_seconds " in proxy.get("/metrics")[1], 30, "an offset")
        assert abs(proxy.metric("sluicegate_clock_offset_seconds")) < 5
        mark.touch()
        detail = begins(proxy, "clock_offset")
        assert " s behind that of the active controller" in detail
        eventually(lambda: -7205 < proxy.metric("sluicegate_clock_offset_seconds") < -7195, what="two hours")

        mark.unlink()
        ends(proxy, "clock_offset")
    finally:
        proxy.stop()
