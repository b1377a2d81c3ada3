"""Drains, waits and shortages end, with large batches in validation, silent brokers or exhausted descriptors."""

import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.bounds import hostile_batches as hostile
from tests.bounds.frames import good_batch, incomplete_frame, request_header, sized_produce_request, sized_request
from tests.bounds.stage import HOST, Stage, StageMaker
from tests.broker.eventually import eventually
from tests.wire.batches import ZSTD
from tests.wire.raw_client import RawClient


def good_request(topic: bytes) -> bytes:
    return sized_produce_request(9, {topic: [(0, good_batch(hostile.now()))]})


@pytest.mark.parametrize("workers", [1, 2])
def test_a_drain_ends_while_a_large_batch_is_validated(workers: int, stage_of: StageMaker) -> None:
    stage = stage_of(config={"drain_timeout_seconds": 2, "workers": workers})
    one = hostile.small_batch_of(ZSTD, (1 << 20) - 100)
    giant = sized_produce_request(9, {b"attacked": [(i, one) for i in range(3_000_000 // len(one))]})
    clients = [RawClient(f"{HOST}:{stage.port(1)}", 5) for _ in range(3)]
    senders = [threading.Thread(target=send_all, args=(client.socket, giant), daemon=True) for client in clients]
    for sender in senders:
        sender.start()
    eventually(lambda: stage.proxy.metric("sluicegate_connections_total") >= 3 or stage.open_connections() >= 3, 10)

    begun = time.monotonic()
    assert stage.proxy.process is not None
    stage.proxy.process.send_signal(signal.SIGTERM)
    code = stage.proxy.process.wait(60)

    assert time.monotonic() - begun < 2 + 5
    assert code == 0
    assert "Event loop is closed" not in stage.proxy.log()
    assert stage.faults_in_files(0) == []
    for client in clients:
        client.socket.close()


def send_all(connection: socket.socket, data: bytes) -> None:
    try:
        connection.sendall(data)
    except OSError:
        return


@pytest.mark.parametrize("mode", ["silent", "deaf", "forged: half a response", "forged: 100 MB announced"])
def test_a_drain_ends_in_time_with_silent_or_deaf_brokers_and_partial_responses(
    mode: str, stage_of: StageMaker
) -> None:
    stage = stage_of(broker=mode, config={"drain_timeout_seconds": 2})
    clients = [RawClient(f"{HOST}:{stage.port(1)}", 5) for _ in range(20)]
    for number, client in enumerate(clients):
        send_all(
            client.socket,
            (good_request(b"a"), sized_request(18, 0, b""), incomplete_frame(1000, request_header(0, 9)))[number % 3],
        )
    eventually(lambda: stage.open_connections() >= 20, 10)

    begun = time.monotonic()
    assert stage.proxy.process is not None
    stage.proxy.process.send_signal(signal.SIGTERM)
    assert stage.proxy.process.wait(60) == 0

    assert time.monotonic() - begun < 2 + 5
    for client in clients:
        client.socket.close()


def test_topic_settings_that_a_broker_never_returns_do_not_block_clients(tmp_path: Path) -> None:
    """The first batches to 300 topics neither open a connection each nor wait for each other."""
    settings = {"topic_settings": True, "connect_timeout_seconds": 2, "refresh_seconds": 600}
    stage = Stage(tmp_path / "stage", "silent to 32", {"upstream": settings})
    stage.proxy.config["upstream"]["bootstrap"] = [f"{HOST}:{stage.target_address[1]}"]
    try:
        stage.start()
        assert stage.honest is not None
        opened = stage.target.ask("counts")["opened"]
        stage.honest.ask("start")
        clients = [RawClient(f"{HOST}:{stage.port(1)}", 5) for _ in range(300)]
        begun = time.monotonic()
        for number, client in enumerate(clients):
            client.socket.sendall(good_request(b"first-%d" % number))
        assert all(isinstance(client.receive(10), bytes) for client in clients)
        assert time.monotonic() - begun < 2 * 2 + 2
        assert stage.longest_wait() < 0.5
        ours = stage.target.ask("counts")["opened"] - opened - len(clients)
        assert ours <= 10, f"{ours} connections were opened to read the settings of 300 topics"
        for client in clients:
            client.socket.close()
    finally:
        stage.stop()


def test_a_topic_name_of_40000_bytes_is_not_looked_up(tmp_path: Path) -> None:
    """A broker does not respond to a request with such a name, so the settings of other topics would be missing too."""
    settings = {"topic_settings": True, "refresh_seconds": 1}
    stage = Stage(tmp_path / "stage", config={"upstream": settings})
    stage.proxy.config["upstream"]["bootstrap"] = [f"{HOST}:{stage.target_address[1]}"]
    try:
        stage.start(honest=False)
        with RawClient(f"{HOST}:{stage.port(1)}", 20) as client:
            client.socket.sendall(good_request(b"x" * 40_000))
            assert client.receive(8) != "silence"
        with RawClient(f"{HOST}:{stage.port(1)}", 20) as client:
            client.socket.sendall(good_request(b"sound"))
            assert isinstance(client.receive(8), bytes)
        asked = stage.target.ask("counts")["per_key"].get("32", 0)
        eventually(
            lambda: stage.target.ask("counts")["per_key"].get("32", 0) > asked + 2, 15, "further lookups of topics"
        )
        assert "topic settings cannot be read" not in stage.proxy.log(), stage.proxy.log()[-3000:]
    finally:
        stage.stop()


@pytest.mark.parametrize("tls", [False, True])
def test_the_admin_endpoint_responds_when_descriptors_are_exhausted(tls: bool, stage_of: StageMaker) -> None:
    stage = stage_of(tls=tls, shell='exec prlimit --nofile=100 "$0" "$@"')
    hoard = [socket.create_connection((HOST, stage.port(1)), 5) for _ in range(300)]
    try:
        # No event announces this, because the endpoint must respond during the whole shortage.
        for _ in range(5):
            assert stage.proxy.get("/livez") == (200, "ok\n")
            time.sleep(0.3)
    finally:
        for connection in hoard:
            connection.close()

    honest = stage.wait_until_quiet(15)
    assert honest == 0
    if not tls:
        with RawClient(f"{HOST}:{stage.port(1)}", 5) as client:
            client.socket.sendall(good_request(b"afterwards"))
            assert isinstance(client.receive(5), bytes)
    assert stage.faults_in_files(0) == []


def test_tls_handshakes_that_never_end_block_no_client(stage_of: StageMaker) -> None:
    stage = stage_of(honest=True, tls=True)
    assert stage.honest is not None
    stage.honest.ask("start")
    hoard = [socket.create_connection((HOST, stage.port(1)), 5) for _ in range(200)]
    for number, connection in enumerate(hoard):
        if number % 2:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01")

    assert stage.longest_wait() < 1
    stage.wait_until_live()
    for connection in hoard:
        connection.close()
