"""Any input results in a clear log line or the broker's own response, and other clients are not affected."""

import os
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from sluicegate.protocol.headers import build_request_header
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.broker.proxy_process import COMMAND, ProxyProcess
from tests.integration.test_produce import bad_batch_now, good_batch_now, leader_of, now_ms
from tests.integration.topics import UNVALIDATED, create_topic
from tests.wire.batches import ZSTD, Rec, batch, varint
from tests.wire.raw_client import API_VERSIONS, CLOSED, PRODUCE, RawClient, produce_body, topic_data


def request_header(key: int, version: int, client_id: bytes = b"x") -> bytes:
    return struct.pack(">hhih", key, version, 7, len(client_id)) + client_id


GARBAGE = {
    "a negative size": (struct.pack(">i", -5), "a frame claims a negative size (-5)"),
    "a size of 2 GiB": (struct.pack(">i", 2**31 - 1) + b"junk", "a frame claims 2147483647 bytes"),
    "a TLS hello": (bytes.fromhex("16030102000100") + bytes(100), "a TLS handshake on a plain port"),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "an HTTP request on a Kafka port"),
    "an unknown API": (struct.pack(">i", 11) + request_header(999, 0), "unknown API key 999"),
    "a version from the future": (
        struct.pack(">i", 11) + request_header(0, 99),
        "Produce v99: this proxy supports versions 0 to 13",
    ),
    "a frame too short": (struct.pack(">i", 3) + b"abc", "a frame of 3 bytes is too short for a request"),
    "a Produce of garbage": (struct.pack(">i", 31) + request_header(0, 9) + b"\xff" * 20, "Produce v9: "),
    "a header cut short": (
        struct.pack(">i", 10) + struct.pack(">hhih", 0, 9, 1, 50),
        "the request ends within its client id",
    ),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_closes_the_connection_with_a_clear_log_line(what: str, proxy: ProxyProcess) -> None:
    data, line = GARBAGE[what]
    bystander = RawClient(proxy.bootstrap)

    with RawClient(proxy.bootstrap) as client:
        client.socket.sendall(data)
        assert client.receive() == CLOSED

    eventually(lambda: line in proxy.log(), what=f"a log line with {line!r}")
    assert isinstance(bystander.api_versions(), dict)
    bystander.socket.close()


@pytest.mark.parametrize("what", GARBAGE)
def test_requests_before_garbage_get_the_responses_of_a_broker(
    what: str, kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 1)
    garbage, _ = GARBAGE[what]

    directly, proxied = (
        codes_and_end_after_garbage(address, topic, garbage) for address in (kafka_bootstrap, leader_of(proxy, topic))
    )

    assert directly == proxied == [0, 0, CLOSED]


def codes_and_end_after_garbage(address: str, topic: str, garbage: bytes) -> list[int | str]:
    """Return the codes of two good requests and the end of the connection after garbage."""
    with RawClient(address) as client:
        frame = build_request_header(PRODUCE, 9, 5, "x", 2) + produce_body(
            9, [topic_data(topic, (0, good_batch_now()))]
        )
        client.socket.sendall((struct.pack(">i", len(frame)) + frame) * 2 + garbage)
        responses = [client.response_to(5, PRODUCE, 9, PRODUCE_RESPONSE) for _ in range(2)]
        codes = [a["responses"][0]["partition_responses"][0]["error_code"] for a in responses]
        end = client.receive()
        assert isinstance(end, str)
        return [*codes, end]


@pytest.mark.long
def test_repeated_garbage_does_not_flood_the_log(proxy: ProxyProcess) -> None:
    before = proxy.log().count("unknown API key 998")
    for _ in range(50):
        with RawClient(proxy.bootstrap) as client:
            client.socket.sendall(struct.pack(">i", 11) + request_header(998, 0))
            assert client.receive() == CLOSED

    eventually(lambda: proxy.log().count("unknown API key 998") == before + 1)


def test_a_truncated_batch_is_rejected_and_the_connection_stays_open(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    with RawClient(leader_of(proxy, topic)) as client:
        cut = client.produce(9, [topic_data(topic, (0, good_batch_now()[:-3]))])
        fine = client.produce(9, [topic_data(topic, (0, good_batch_now()))])

    assert [a["responses"][0]["partition_responses"][0]["error_code"] for a in (cut, fine)] == [87, 0]


def test_a_decompression_bomb_is_rejected_in_bounded_memory(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    value = bytes(400_000_000)
    body = b"\0" + varint(0) + varint(0) + varint(-1) + varint(len(value)) + value + varint(0)
    bomb = batch([], ZSTD, payload=varint(len(body)) + body, count=1, base_timestamp=now_ms(), max_timestamp=now_ms())
    assert len(bomb) < 100_000
    assert proxy.process is not None
    before = resident_bytes(proxy.process.pid)

    with RawClient(leader_of(proxy, topic)) as client:
        rejected = client.produce(9, [topic_data(topic, (0, bomb))])
        fine = client.produce(9, [topic_data(topic, (0, good_batch_now()))])

    (entry,) = rejected["responses"][0]["partition_responses"]
    assert entry["error_code"] == 87
    assert "decompresses to more than" in entry["error_message"]
    assert fine["responses"][0]["partition_responses"][0]["error_code"] == 0
    assert resident_bytes(proxy.process.pid) - before < 200_000_000


def resident_bytes(pid: int) -> int:
    """Return the peak resident memory of a process (VmHWM)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024


def test_a_request_that_never_ends_closes_its_connection(kafka_bootstrap: str, tmp_path: Path) -> None:
    slow = ProxyProcess(tmp_path, kafka_bootstrap, {"limits": {"frame_timeout_seconds": 0.5}}).start()
    try:
        with RawClient(slow.bootstrap) as client:
            client.socket.sendall(struct.pack(">i", 1000) + request_header(PRODUCE, 9))
            assert client.receive() == CLOSED
        slow.wait_for_line("a request has not arrived completely, and less than 16384 bytes of it came in 0.5 s")
    finally:
        slow.stop()


@pytest.mark.parametrize(
    ("size", "bytes_a_second", "limits"),
    [
        (300_000, 200_000, {"frame_timeout_seconds": 0.25}),
        pytest.param(17_500_000, 500_000, {}, marks=pytest.mark.long),  # 35 s, where frame_timeout_seconds is 30
    ],
)
def test_a_request_over_a_slow_link_is_stored_if_it_progresses(
    kafka_bootstrap: str, tmp_path: Path, size: int, bytes_a_second: int, limits: dict[str, float]
) -> None:
    slow = ProxyProcess(tmp_path, kafka_bootstrap, {"limits": limits}).start()
    topic = create_topic(kafka_bootstrap, UNVALIDATED | {"max.message.bytes": "20000000"}, 1)
    records = topic_data(topic, (0, batch([Rec(now_ms(), value=os.urandom(size))])))
    frame = build_request_header(PRODUCE, 9, 5, "x", 2) + produce_body(9, [records])
    data = struct.pack(">i", len(frame)) + frame
    step = bytes_a_second // 20
    try:
        with RawClient(leader_of(slow, topic)) as client:
            for at in range(0, len(data), step):
                client.socket.sendall(data[at : at + step])
                time.sleep(0.05)  # the speed of the link
            response = client.response_to(5, PRODUCE, 9, PRODUCE_RESPONSE)
    finally:
        slow.stop()

    assert not isinstance(response, str), response
    assert response["responses"][0]["partition_responses"][0]["error_code"] == 0


def test_requests_beyond_the_memory_limit_wait_instead_of_failing(kafka_bootstrap: str, tmp_path: Path) -> None:
    limits = {"max_frame_bytes": 1_000_000, "max_buffered_bytes": 1_000_000}
    tight = ProxyProcess(tmp_path, kafka_bootstrap, {"limits": limits}).start()
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    try:
        address = leader_of(tight, topic)
        request = produce_body(9, [topic_data(topic, (0, batch([Rec(now_ms(), value=b"x" * 600_000)])))])
        clients = [RawClient(address) for _ in range(5)]
        asked = [client.send(PRODUCE, 9, request) for client in clients]
        for client, correlation_id in zip(clients, asked, strict=True):
            frame = client.receive()
            assert isinstance(frame, bytes)
            assert struct.unpack_from(">i", frame)[0] == correlation_id
            client.socket.close()
    finally:
        tight.stop()


def test_an_unreachable_upstream_is_one_clear_log_line_and_not_ready(tmp_path: Path) -> None:
    nowhere = f"127.0.0.1:{free_ports(1)}"
    proxy = ProxyProcess(tmp_path, nowhere).start(ready=False)
    try:
        with RawClient(proxy.bootstrap) as client:
            client.send(API_VERSIONS, 0, b"")
            assert client.receive() == CLOSED
        eventually(lambda: "broker unreachable" in proxy.log())
        status, text = proxy.get("/readyz")
        assert status == 503
        assert f"no upstream broker responds: {nowhere}: Connection refused" in text
        assert proxy.get("/livez") == (200, "ok\n")
    finally:
        proxy.stop()


def test_an_upstream_that_is_not_a_broker_is_reported(tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(20)
    proxy = ProxyProcess(tmp_path, f"127.0.0.1:{listener.getsockname()[1]}")
    try:
        proxy.config["upstream"]["connect_timeout_seconds"] = 1
        proxy.start(ready=False)
        eventually(lambda: "no response within 1.0 s" in proxy.get("/readyz")[1])
    finally:
        proxy.stop()
        listener.close()


def sluicegate(*arguments: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=folder,
        env=os.environ | environment,
        check=False,
    )


def test_a_port_in_use_ends_the_start_with_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = sluicegate("run", "--upstream", "127.0.0.1:1", "--listen", f"127.0.0.1:{port}", folder=tmp_path)

    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        f"sluicegate: cannot listen on 127.0.0.1:{port}: Address already in use; "
        "stop the process that listens there (ss -ltnp shows it), or choose another port"
    )


def test_a_broker_port_in_use_excludes_that_broker_and_is_reported(kafka_bootstrap: str, tmp_path: Path) -> None:
    proxy = ProxyProcess(tmp_path, kafka_bootstrap)
    with RawClient(kafka_bootstrap.split(",", maxsplit=1)[0]) as client:
        nodes = [broker["node_id"] for broker in client.metadata()["brokers"]]
    taken = [socket.create_server(("127.0.0.1", proxy.broker_port(node))) for node in nodes]
    try:
        proxy.start(ready=False)
        with RawClient(proxy.bootstrap) as client:
            assert client.metadata()["brokers"] == []
        proxy.wait_for_line("broker unavailable to clients")
        status, words = proxy.get("/readyz")
        assert status == 503
        address = f"127.0.0.1:{proxy.broker_port(nodes[0])}"
        assert f"broker {nodes[0]}: the broker's port cannot be bound: {address}: Address already in use" in words
        assert proxy.metric("sluicegate_ready") == 0
        for listener in taken:
            listener.close()
        eventually(lambda: proxy.get("/readyz")[0] == 200, what="readiness after the port is free")
    finally:
        proxy.stop()
        for listener in taken:
            listener.close()


def test_a_broken_config_file_names_each_key_and_line(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("upstream:\n  bootstap: [x]\nlisten:\n  bootstrap: nonsense\n")

    done = sluicegate("run", "--config", str(file), folder=tmp_path)

    assert done.returncode == 1
    assert f"{file}:2: upstream.bootstap: no such key; did you mean bootstrap?" in done.stderr
    assert f"{file}:4: listen.bootstrap: expected host:port" in done.stderr


def test_an_unwritable_violations_file_ends_the_start(tmp_path: Path) -> None:
    done = sluicegate(
        *("run", "--upstream", "127.0.0.1:1", "--listen", f"127.0.0.1:{free_ports(1)}"),
        folder=tmp_path,
        SLUICEGATE__VIOLATIONS__FILE=str(tmp_path / "no" / "such" / "folder"),
    )

    assert done.returncode == 1
    folder = tmp_path / "no" / "such"
    assert f"cannot be written: No such file or directory; create the folder {folder}\n" in done.stderr


def test_a_broken_producer_does_not_flood_the_log(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    with RawClient(leader_of(proxy, topic)) as client:
        for _ in range(100):
            client.produce(9, [topic_data(topic, (0, bad_batch_now()))])

    eventually(lambda: len(proxy.violations_of(topic)) == 100, what="an event for each rejection")
    proxy.wait_for_line(topic)
    assert len([line for line in proxy.log().splitlines() if topic in line and "rejected" in line]) == 1


def test_no_connection_is_open_after_the_bad_input_tests(proxy: ProxyProcess) -> None:
    assert proxy.get("/livez")[0] == 200
    eventually(lambda: proxy.metric("sluicegate_open_connections") == 0)
