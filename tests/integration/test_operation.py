"""Operators can rely on stable ports, new brokers, warnings, metrics and bounded memory."""

import json
import os
import signal
import socket
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_produce import INVALID_TIMESTAMP, good_batch_now, leader_of, now_ms, topic_name_or_id
from tests.integration.topics import UNVALIDATED, create_topic
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import CLOSED, FETCH, PRODUCE, RawClient, fetch_body, produce_body, topic_data

HOUR_MS = 3_600_000


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.mark.long
def test_a_new_broker_gets_its_port_without_a_restart(cluster: Kafka, tmp_path: Path) -> None:
    newcomer = cluster.nodes[2]
    cluster.kill(newcomer)
    with RawClient(cluster.nodes[0].address) as client:
        eventually(lambda: len(client.metadata()["brokers"]) == 2, 30, "a cluster of two brokers")
    proxy = ProxyProcess(tmp_path, ",".join(node.address for node in cluster.nodes[:2])).start()
    try:
        assert [is_listening(proxy.broker_port(node.node_id)) for node in cluster.nodes] == [True, True, False]

        cluster.start_node(newcomer)
        cluster.wait_until_up(newcomer)

        eventually(lambda: is_listening(proxy.broker_port(newcomer.node_id)), 30, "a port for the new broker")
        with RawClient(f"127.0.0.1:{proxy.broker_port(newcomer.node_id)}") as client:
            ports = {broker["port"] for broker in client.metadata()["brokers"]}
        assert ports == {proxy.broker_port(node.node_id) for node in cluster.nodes}
    finally:
        proxy.stop()


@pytest.mark.long
def test_traffic_histories_equal_the_stored_and_rejected_bytes(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """Compares the histories of two topics and two clients with the broker's logs, which have all batches that were not
    rejected."""
    one, other = (create_topic(kafka_bootstrap, UNVALIDATED, 1) for _ in range(2))
    steady, faulty = f"steady-{one}", f"faulty-{one}"
    bad = [now_ms() * 1_000_000, now_ms() - 48 * HOUR_MS]
    began = now_ms() // 1000
    sent: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    rejected_bytes: Counter[str] = Counter()
    with RawClient(leader_of(proxy, one)) as client:
        for topic, name, timestamps in (
            (one, steady, [now_ms()] * 20),
            (one, faulty, [now_ms(), *bad, now_ms()]),
            (other, faulty, bad[:1]),
        ):
            for timestamp in timestamps:
                records = batch([Rec(now_ms()), Rec(timestamp), Rec(now_ms())])
                asked = client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, records))]), name)
                response = client.response_to(asked, PRODUCE, 9, PRODUCE_RESPONSE)
                assert isinstance(response, dict)
                code = response["responses"][0]["partition_responses"][0]["error_code"]
                assert code == (INVALID_TIMESTAMP if timestamp in bad else 0)
                counts = {"batches": 1, "records": 3, "size": len(records), "violations": int(timestamp in bad)}
                for named in (("topic", topic), ("client", name)):
                    sent[named].update(counts)
                rejected_bytes[topic] += len(records) if timestamp in bad else 0

    for named, expected in sent.items():
        eventually(lambda named=named, expected=expected: _sums(proxy, *named) == expected, 30, f"the sums of {named}")
        first = next(at for at, batches in enumerate(_history(proxy, *named)["batches"]) if batches)
        assert began - 10 <= _history(proxy, *named)["begin"] + 10 * first <= now_ms() // 1000
    with RawClient(kafka_bootstrap) as broker:
        for topic in (one, other):
            assert _sums(proxy, "topic", topic)["size"] == len(broker.log_of(topic, 0)) + rejected_bytes[topic]


def _history(proxy: ProxyProcess, kind: str, name: str) -> dict[str, Any]:
    found = json.loads(proxy.get(f"/api/history?{urlencode({kind: name})}")[1])["traffic"]
    assert isinstance(found, dict)
    return found


def _sums(proxy: ProxyProcess, kind: str, name: str) -> dict[str, int]:
    found = _history(proxy, kind, name)
    return {column: sum(found[column]) for column in ("batches", "records", "size", "violations")}


@pytest.mark.long
def test_a_hangup_does_not_end_the_proxy_and_is_logged(kafka_bootstrap: str, tmp_path: Path) -> None:
    for workers in (1, 2):
        proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"workers": workers}).start()
        try:
            assert proxy.process is not None
            with RawClient(proxy.bootstrap) as client:
                client.metadata()
                proxy.process.send_signal(signal.SIGHUP)
                proxy.wait_for_line("configuration reloaded")
                client.metadata()
            assert proxy.get("/readyz")[0] == 200
        finally:
            proxy.stop()


def test_a_client_that_ignores_api_versions_reconnects_slowly(kafka_bootstrap: str, tmp_path: Path) -> None:
    """kafka-replica-verification sends the newest Fetch without ApiVersions, 5,000 times a second."""
    proxy = ProxyProcess(tmp_path, kafka_bootstrap).start()
    try:
        began = time.monotonic()
        for _ in range(3):
            with RawClient(proxy.bootstrap) as client:
                client.send(FETCH, 18, b"")
                assert client.receive(10) == CLOSED
        assert time.monotonic() - began > 0.3
        assert 'sluicegate_unsupported_versions_total{api="Fetch"} 3.0' in proxy.get("/metrics")[1]
        assert "Fetch v18: this proxy supports versions 0 to 15" in proxy.wait_for_line("Fetch v18")
    finally:
        proxy.stop()


def test_a_single_client_can_be_traced_in_the_log(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"log": {"client_id": "followed"}}).start()
    try:
        for name in ("followed", "another"):
            with RawClient(leader_of(proxy, topic)) as client:
                client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, good_batch_now()))]), client_id=name)
                assert client.receive(10) != CLOSED
        proxy.wait_for_line("connection closed")
        lines = [line for line in map(json.loads, proxy.log().splitlines()) if line["level"] == "debug"]
    finally:
        proxy.stop()

    names = [line["event"] for line in lines if line["event"] not in ("paused", "resumed")]
    assert names == ["connection opened", "request", "client identified", "response", "connection closed"]
    assert [line["codes"] for line in lines if line["event"] == "response"] == [["NONE"]]


@pytest.mark.long
def test_after_a_restart_every_port_is_open_before_a_client_connects(kafka_bootstrap: str, tmp_path: Path) -> None:
    proxy = ProxyProcess(tmp_path, kafka_bootstrap).start()
    try:
        with RawClient(proxy.bootstrap) as client:
            ports = [broker["port"] for broker in client.metadata()["brokers"]]
        proxy.kill()
        proxy.start()
        assert all(is_listening(port) for port in ports)
    finally:
        proxy.stop()


def test_a_dead_bootstrap_address_is_skipped(kafka_bootstrap: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = f"127.0.0.1:{closed.getsockname()[1]}"
    proxy = ProxyProcess(tmp_path, f"{dead},{kafka_bootstrap}").start()
    try:
        with RawClient(proxy.bootstrap) as client:
            assert isinstance(client.api_versions(), dict)
    finally:
        proxy.stop()


def test_allowed_timestamps_in_the_future_are_warned_about_once(kafka_bootstrap: str, tmp_path: Path) -> None:
    proxy = ProxyProcess(
        tmp_path, kafka_bootstrap, {"defaults": {"message.timestamp.after.max.ms": 10 * HOUR_MS}}
    ).start()
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    try:
        with RawClient(leader_of(proxy, topic)) as client:
            for _ in range(20):
                ahead = batch([Rec(now_ms() + 2 * HOUR_MS)])
                response = client.produce(9, [topic_data(topic, (0, ahead))])
                assert response["responses"][0]["partition_responses"][0]["error_code"] == 0
            client.produce(9, [topic_data(topic, (0, batch([Rec(now_ms() + HOUR_MS // 2)])))])
        assert proxy.metric("sluicegate_future_timestamp_batches_total") == 20
        proxy.wait_for_line("batch accepted with future timestamps")
        lines = [line for line in proxy.log().splitlines() if "batch accepted with future timestamps" in line]
        assert len(lines) == 1
        assert topic in lines[0]
        assert '"client_id": "raw"' in lines[0]
    finally:
        proxy.stop()


def test_metrics_count_requests_batches_and_rejections(kafka_bootstrap: str, tmp_path: Path) -> None:
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"defaults": {"message.timestamp.after.max.ms": HOUR_MS}}).start()
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    try:
        with RawClient(leader_of(proxy, topic)) as client:
            client.produce(9, [topic_data(topic, (0, good_batch_now()), (1, batch([Rec(now_ms() * 1000)] * 3)))])
        _, text = proxy.get("/metrics")
        for line in (
            "sluicegate_produce_requests_total 1.0",
            "sluicegate_accepted_batches_total 1.0",
            "sluicegate_accepted_records_total 1.0",
            f'sluicegate_rejected_batches_total{{error="INVALID_TIMESTAMP",topic="{topic}"}} 1.0',
            f'sluicegate_rejected_records_total{{error="INVALID_TIMESTAMP",topic="{topic}"}} 3.0',
        ):
            assert line in text
        assert proxy.get("/nothing")[0] == 404
    finally:
        proxy.stop()


@pytest.mark.parametrize("target", ["a full disk", "an unread pipe"])
def test_a_blocked_log_delays_no_client(target: str, kafka_bootstrap: str, tmp_path: Path) -> None:
    reading, writing = os.pipe() if target != "a full disk" else (None, os.open("/dev/full", os.O_WRONLY))
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"defaults": {"message.timestamp.after.max.ms": HOUR_MS}})
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    try:
        proxy.start(stderr=writing)
        with RawClient(leader_of(proxy, topic)) as client:
            for number in range(300):
                request = produce_body(9, [topic_data(topic, (0, batch([Rec(now_ms() * 1000)])))])
                asked = client.send(PRODUCE, 9, request, client_id=f"client-{number}-" + "x" * 230)
                frame = client.receive(10)
                assert isinstance(frame, bytes)
                assert int.from_bytes(frame[:4], "big") == asked
        assert proxy.get("/livez") == (200, "ok\n")
        if reading is None:
            assert proxy.metric("sluicegate_log_lines_dropped_total") > 0
        assert len(proxy.wait_for_violations(topic, 300)) == 300
        proxy.terminate()
        assert proxy.process is not None
        assert proxy.process.wait(20) == 0
    finally:
        proxy.stop()
        for fd in (reading, writing):
            if fd is not None:
                os.close(fd)


@pytest.mark.long
def test_unread_responses_do_not_accumulate_in_memory(kafka_bootstrap: str, tmp_path: Path) -> None:
    """Backpressure: when a client stops reading, the proxy stops reading its broker connection."""
    proxy = ProxyProcess(tmp_path, kafka_bootstrap).start()
    topic = create_topic(kafka_bootstrap, UNVALIDATED | {"max.message.bytes": "20000000"})
    megabytes = 40
    try:
        address = leader_of(proxy, topic)
        with RawClient(address) as client:
            for _ in range(megabytes):
                stored = client.produce(9, [topic_data(topic, (0, batch([Rec(now_ms(), value=bytes(1_000_000))])))])
                assert stored["responses"][0]["partition_responses"][0]["error_code"] == 0
        assert proxy.process is not None
        before = resident_now(proxy.process.pid)

        readers = [RawClient(address) for _ in range(5)]
        asked = [reader.send(FETCH, 11, fetch_body(topic, 0, 0)) for reader in readers]
        eventually(lambda: proxy.metric("sluicegate_in_flight_requests") <= 0, 30, "no request in flight")
        time_to_look = time.monotonic() + 1
        eventually(lambda: time.monotonic() > time_to_look)
        grown = resident_now(proxy.process.pid) - before

        for reader, correlation_id in zip(readers, asked, strict=True):
            frame = reader.receive(30)
            assert isinstance(frame, bytes)
            assert int.from_bytes(frame[:4], "big") == correlation_id
            assert len(frame) > megabytes * 1_000_000
            reader.socket.close()
        assert grown < 20_000_000
    finally:
        proxy.stop()


def resident_now(pid: int) -> int:
    """Return the resident memory of a process (VmRSS)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) * 1024


@pytest.mark.parametrize("version", [12, 13])
def test_no_response_contains_an_upstream_port(version: int, kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    upstream_ports = {int(address.rpartition(":")[2]) for address in kafka_bootstrap.split(",")}
    with RawClient(leader_of(proxy, topic)) as client:
        responses = [
            client.metadata(topic, version=version),
            client.metadata(version=version),
            client.produce(version, [topic_data(topic_name_or_id(proxy, topic, version), (0, good_batch_now()))]),
        ]

    assert not any(
        f": {port}," in str(response) or f": {port}}}" in str(response)
        for response in responses
        for port in upstream_ports
    )
