"""The admin endpoint sends the right responses at the right address, and no client can block it."""

import gzip
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.admin import connections as admin_connections
from sluicegate.proxy.admin.endpoint import AdminServer
from sluicegate.proxy.network.listeners import CannotListen
from sluicegate.proxy.reporting.metrics.collection import metrics_of
from sluicegate.proxy.reporting.metrics.counters import Counters, Snapshot
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from tests.broker.child_processes import killed_with_parent

_PATIENCE_SECONDS = 60
_MUCH_SECONDS = 2
"""The maximum CPU time (s) for one response. It excludes time in which a busy machine runs other processes."""


@pytest.fixture(autouse=True)
def _long_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the deadline longer than the test's timeout, so that a request that waits for another connection fails the
    test."""
    monkeypatch.setattr(admin_connections, "DEADLINE_SECONDS", 10 * _PATIENCE_SECONDS)


def loopback_addresses() -> list[str]:
    """Return the loopback address of IPv4, and that of IPv6 if the machine has one."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return ["127.0.0.1"]
    return ["127.0.0.1", "::1"]


@pytest.fixture(params=loopback_addresses())
def admin(request: pytest.FixtureRequest) -> Iterator[tuple[str, AdminServer, Status]]:
    status = Status()
    server = AdminServer(HostPort(request.param, 0), lambda: metrics_of(Snapshot(Counters(), 3)), status)
    yield f"http://{HostPort(request.param, server.port)}", server, status
    server.close()


def get_status_and_text(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=_PATIENCE_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_admin_endpoint_serves_health_readiness_and_metrics(admin: tuple[str, AdminServer, Status]) -> None:
    url, _, status = admin

    assert get_status_and_text(url + "/livez") == (200, "ok\n")
    assert get_status_and_text(url + "/readyz") == (503, "not serving\nstarting: starting\n")
    status.end(Condition.STARTING)
    assert get_status_and_text(url + "/readyz") == (200, "serving\n")
    status.begin(Condition.WORKER_RESTARTED, "worker 2 ended with exit code -9", "worker 2")
    assert get_status_and_text(url + "/readyz") == (
        200,
        "needs attention\nworker_restarted: worker 2 ended with exit code -9\n",
    )
    assert "sluicegate_in_flight_requests 3.0" in get_status_and_text(url + "/metrics")[1]
    assert get_status_and_text(url + "/else")[0] == 404
    assert get_status_and_text(url + "/metrics/fleet") == (
        404,
        "the metrics of all proxies require state.topic in the configuration\n",
    )


def open_socket(server: AdminServer, host: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((host, server.port), _PATIENCE_SECONDS)


def read_to_end(connection: socket.socket) -> bytes:
    """Return all bytes until the connection ends, in whatever way."""
    told = b""
    try:
        while data := connection.recv(1 << 20):
            told += data
    except ConnectionResetError:
        pass
    return told


@pytest.fixture
def server() -> Iterator[AdminServer]:
    server = AdminServer(HostPort("127.0.0.1", 0), lambda: metrics_of(Snapshot(Counters(), 3)), Status())
    yield server
    server.close()


def is_responsive(server: AdminServer) -> bool:
    """Return whether the server responds without waiting for other connections and without much work for them."""
    begin = time.process_time()
    return (
        get_status_and_text(f"http://127.0.0.1:{server.port}/livez") == (200, "ok\n")
        and time.process_time() - begin < _MUCH_SECONDS
    )


def test_metrics_have_the_requested_format(server: AdminServer) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/metrics")
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    request.add_header("Accept", "application/openmetrics-text;version=1.0.0")
    request.add_header("Accept-Encoding", "gzip")
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        assert answer.headers["Content-Encoding"] == "gzip"
        assert list(text_string_to_metric_families(gzip.decompress(answer.read()).decode()))
    request.add_header("Accept", "application/openmetrics-text;version=none")
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert answer.status == 200


def test_head_has_no_body_and_other_methods_are_rejected(server: AdminServer) -> None:
    with open_socket(server) as connection:
        connection.sendall(b"HEAD /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        head, _, body = read_to_end(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 3" in head
    assert body == b""
    for method in (b"POST", b"DELETE", b"OPTIONS", b"X"):
        with open_socket(server) as connection:
            connection.sendall(method + b" /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
            told = read_to_end(connection)
        assert told.startswith(b"HTTP/1.1 405 Method Not Allowed\r\n")
        assert b"Allow: GET, HEAD" in told


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\xfc\x03\x03" + bytes(300), id="a TLS hello"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
        pytest.param(b"\x00\x00\x00\x14\x00\x03\x00\x0c", id="Kafka"),
        pytest.param(b"GET /livez HTTP/1.1\r\n\r\n", id="no Host"),
        pytest.param(b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", id="a wrong length"),
        pytest.param(b"\r\n\r\n\r\n\r\n", id="empty lines"),
        pytest.param(b"GET /" + b"a" * 20_000, id="a request line without an end"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5000, id="headers without an end"),
    ],
)
def test_invalid_http_is_rejected_or_closed(
    data: bytes, server: AdminServer, capfd: pytest.CaptureFixture[str]
) -> None:
    with open_socket(server) as connection:
        connection.sendall(data)
        told = read_to_end(connection)

    assert told == b"" or told.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))
    assert is_responsive(server)
    assert "Traceback" not in "".join(capfd.readouterr())


def test_only_first_pipelined_request_gets_response(server: AdminServer) -> None:
    with open_socket(server) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        assert read_to_end(connection).count(b"HTTP/1.1 200 OK") == 1


def test_silent_connection_does_not_block_other_connections(admin: tuple[str, AdminServer, Status]) -> None:
    url, server, _ = admin
    with open_socket(server, url.removeprefix("http://").rpartition(":")[0].strip("[]")):
        assert get_status_and_text(url + "/livez")[0] == 200


def test_a_thousand_silent_connections_use_no_thread_and_block_no_request(server: AdminServer) -> None:
    threads = threading.active_count()
    silent = []
    for _ in range(1000):
        silent.append(open_socket(server))
        assert len(silent) % 100 or is_responsive(server)

    assert is_responsive(server)
    assert threading.active_count() <= threads + 1
    assert read_to_end(silent[0]) == b"", "the oldest was closed for a new one"
    for connection in silent:
        connection.close()


@pytest.mark.parametrize("start", [b"", b"GET /livez HTTP/1.1\r\nHo"], ids=["silent", "half a request"])
def test_a_silent_admin_connection_is_closed_at_its_deadline(
    start: bytes, server: AdminServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_connections, "DEADLINE_SECONDS", 0.5)
    with open_socket(server) as connection:
        connection.sendall(start)
        assert read_to_end(connection) == b""


def test_a_slowly_sent_admin_request_is_closed_at_its_deadline(
    server: AdminServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_connections, "DEADLINE_SECONDS", 0.5)
    begin = time.monotonic()
    with open_socket(server) as connection, pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
        while time.monotonic() - begin < _PATIENCE_SECONDS:  # a deadline per byte would never end the wait
            connection.sendall(b"G")
            threading.Event().wait(0.02)


def test_scrapers_that_do_not_read_do_not_delay_other_scrapers() -> None:
    counters = Counters()
    counters.batch_counts["sluicegate_rejected_batches"].update(
        {(f"topic-{i}-" + "x" * 200, "X"): 1 for i in range(20_000)}
    )
    server = AdminServer(HostPort("127.0.0.1", 0), lambda: metrics_of(Snapshot(counters, 3)), Status())
    try:
        readers = []
        for _ in range(40):
            reader = socket.socket()
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", server.port))
            reader.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            readers.append(reader)
        assert is_responsive(server)
        for reader in readers:
            reader.close()
    finally:
        server.close()


@pytest.mark.internal_error
def test_a_slow_scrape_delays_no_health_check_and_a_failed_one_is_logged() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def raise_no_counters() -> Snapshot:
        asked.set()
        go_on.wait(10 * _PATIENCE_SECONDS)
        raise RuntimeError("no counters")

    server = AdminServer(HostPort("127.0.0.1", 0), lambda: metrics_of(raise_no_counters()), Status())
    try:
        with open_socket(server) as scrape:
            scrape.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            assert asked.wait(_PATIENCE_SECONDS)
            is_alive = is_responsive(server)
            go_on.set()
            assert is_alive
            assert b"500 Internal Server Error" in read_to_end(scrape)
        assert is_responsive(server)
    finally:
        server.close()


def test_a_slow_view_of_all_proxies_delays_no_metrics_of_this_one() -> None:
    released = threading.Event()

    def metrics_of_all() -> Iterator[Metric]:
        released.wait(_PATIENCE_SECONDS)
        yield from metrics_of(Snapshot(Counters(), 5))

    server = AdminServer(
        HostPort("127.0.0.1", 0), lambda: metrics_of(Snapshot(Counters(), 3)), Status(), fleet_metrics=metrics_of_all
    )
    try:
        with open_socket(server) as waiting:
            waiting.sendall(b"GET /metrics/fleet HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            assert (
                "sluicegate_in_flight_requests 3.0" in get_status_and_text(f"http://127.0.0.1:{server.port}/metrics")[1]
            )
            released.set()
            assert b"sluicegate_in_flight_requests 5.0" in read_to_end(waiting)
    finally:
        server.close()


def test_the_admin_endpoint_responds_while_no_descriptor_is_free_and_afterwards() -> None:
    program = """
        import os, resource, sys, threading
        import structlog
        from sluicegate.config.values.address import HostPort
        from sluicegate.proxy.admin.endpoint import AdminServer
        from sluicegate.proxy.status.status import Status
        from sluicegate.proxy.reporting.metrics.collection import metrics_of
        from sluicegate.proxy.reporting.metrics.counters import Snapshot, Counters
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        server = AdminServer(HostPort("127.0.0.1", 0), lambda: metrics_of(Snapshot(Counters(), 0)), Status())
        spent, stop = [], threading.Event()
        def spend():  # take any port that is free for a moment, like a busy listener
            while not stop.is_set():
                try: spent.append(os.open("/dev/null", os.O_RDONLY))
                except OSError: stop.wait(0.001)
        for state in ("free", "spent", "free"):
            thread = threading.Thread(target=spend)
            if state == "spent":
                thread.start()
                while len(spent) < 50: stop.wait(0.01)
                stop.wait(0.5)
            print(server.port, flush=True)
            sys.stdin.readline()
            if state == "spent":
                stop.set()
                thread.join()
                while spent: os.close(spent.pop())
        server.close()
        print("closed", flush=True)
        """
    process = subprocess.Popen(
        killed_with_parent([sys.executable, "-c", textwrap.dedent(program)]),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for state in ("free", "spent", "free"):
            port = int(process.stdout.readline())
            silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
            for _ in range(10):
                assert get_status_and_text(f"http://127.0.0.1:{port}/livez") == (200, "ok\n"), state
            assert "sluicegate_ready 0.0" in get_status_and_text(f"http://127.0.0.1:{port}/metrics")[1], state
            for connection in silent:
                connection.close()
            process.stdin.write("\n")
            process.stdin.flush()
        assert process.stdout.readline() == "closed\n"
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_port_in_use_is_reported_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = HostPort("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(CannotListen, match="Address already in use"):
            AdminServer(address, lambda: metrics_of(Snapshot(Counters(), 0)), Status())
