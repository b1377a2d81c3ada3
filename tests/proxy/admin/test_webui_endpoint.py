"""The admin endpoint serves the web UI to slow readers and to crowds, and protects it from users without access."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from sluicegate.config.values.address import HostPort
from sluicegate.config.values.password import Password, SecretText
from sluicegate.proxy.admin.endpoint import AdminServer
from sluicegate.proxy.live.live_snapshot import LiveQuery
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.webui import streams
from sluicegate.proxy.webui.access import Access
from sluicegate.proxy.webui.responses import HttpResponse, text_response
from sluicegate.proxy.webui.site import NoStateAvailable, Site
from tests.broker.eventually import eventually
from tests.proxy.live.events import NOW
from tests.proxy.live.test_merged_state import state_with, view_with

SECONDS = 30
BIG = 400_000


class StateReader:
    """Returns a state and records what was requested."""

    def __init__(self) -> None:
        self.wishes: list[LiveQuery] = []
        self.fault: Exception | None = None
        self.padding = 0

    def read_state(self, wish: LiveQuery) -> LiveState:
        self.wishes.append(wish)
        if self.fault is not None:
            raise self.fault
        return state_with(view_with("billing", {100: 1}), ["x" * 200] * (self.padding // 200), NOW + len(self.wishes))


@pytest.fixture
def reader() -> StateReader:
    return StateReader()


class EchoedChanges:
    """Returns the requested change as text."""

    def lines_about(self, topic: str) -> list[str]:
        return [f"{topic} is suspended"]

    def change(self, path: str, query: str, _address: str) -> HttpResponse:
        return text_response(200, f"{path} {query}")


Serve = Callable[..., AdminServer]


@pytest.fixture
def serve(reader: StateReader) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start_server(listen: str = "127.0.0.1", token: Password | None = None, **more: Any) -> AdminServer:
            explain = more.get(
                "explain", lambda topic: {"lines": [f"{topic}: what holds"], "effective": [], "source": None}
            )
            address = HostPort("127.0.0.1", 0)
            access = Access(HostPort(listen, 1), token)
            site = Site(access, reader.read_state, explain, more.get("changes"), lambda: [{"time_ms": 5}])
            server = AdminServer(address, list, Status(), lambda: site)
            stack.callback(server.close)
            return server

        yield start_server


def open_request(server: AdminServer, path: str, **headers: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), SECONDS)
    lines = {"Host": "127.0.0.1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    connection.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
    return connection


def response_to(server: AdminServer, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    told = b""
    with open_request(server, path, **headers) as connection:
        while data := connection.recv(1 << 20):
            told += data
    head, _, body = told.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in lines), body


def stream_events(connection: socket.socket) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream until its end."""
    gathered = b""
    while data := connection.recv(1 << 16):
        gathered += data
        *whole, gathered = gathered.split(b"\n\n")
        for message in whole:
            if b"data: " in message:
                yield json.loads(message.partition(b"data: ")[2])


def test_serves_web_ui_page_assets_and_state(serve: Serve) -> None:
    server = serve()

    status, headers, body = response_to(server, "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"<title>sluicegate</title>" in body
    assert response_to(server, "/ui/main.js")[1]["Content-Type"] == "text/javascript; charset=utf-8"
    status, headers, body = response_to(server, "/api/live")
    assert (status, headers["Content-Type"], headers["Cache-Control"]) == (200, "application/json", "no-store")
    assert json.loads(body)["violation_groups"][0]["client_id"] == "billing"
    assert json.loads(response_to(server, "/api/policy?topic=orders.eu")[2])["lines"] == ["orders.eu: what holds"]
    assert json.loads(response_to(server, "/api/policy-changes")[2]) == {"changes": [{"time_ms": 5}]}
    assert response_to(server, "/api/policy")[0] == response_to(server, f"/api/policy?topic={'x' * 301}")[0] == 400
    assert response_to(server, "/elsewhere")[0] == 404
    assert not any(name.lower().startswith("access-control") for name in headers)


def test_a_head_request_opens_no_stream(serve: Serve, reader: StateReader) -> None:
    server = serve()
    with socket.create_connection(("127.0.0.1", server.port), SECONDS) as connection:
        connection.sendall(b"HEAD /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        told = b""
        while data := connection.recv(1 << 16):
            told += data

    assert told.startswith(b"HTTP/1.1 200 OK\r\n")
    assert told.endswith(b"\r\n\r\n")
    assert reader.wishes == []


def test_the_web_ui_is_protected_and_metrics_stay_open(serve: Serve) -> None:
    reachable, guarded = serve("0.0.0.0"), serve("0.0.0.0", Password("admin.token_file", SecretText("sesame"), None))

    for path in ("/", "/ui/main.js", "/api/live", "/api/stream", "/api/policy?topic=a", "/api/policy-changes"):
        status, _, body = response_to(reachable, path)
        assert (status, b"admin.token_file" in body) == (403, True)
    for server in (reachable, guarded):
        for path in ("/metrics", "/livez"):
            assert response_to(server, path, Host="proxy.internal")[0] == 200
    for path in ("/api/live", "/api/stream", "/api/policy?topic=a", "/api/policy-changes"):
        assert response_to(guarded, path)[0] == response_to(guarded, path, Authorization="Bearer wrong")[0] == 401
    assert response_to(guarded, "/", Host="proxy.internal")[0] == 200
    assert response_to(guarded, "/api/live", Host="proxy.internal", Authorization="Bearer sesame")[0] == 200
    assert response_to(serve(), "/api/live", Host="evil.example")[0] == 403


def post_request(server: AdminServer, target: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)
    try:
        connection.request("POST", target, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_changes_need_the_token_even_on_this_machine(serve: Serve) -> None:
    target = "/api/suspend?reason=incident&seconds=60"
    guarded = serve(token=Password("admin.token_file", SecretText("sesame"), None), changes=EchoedChanges())

    status, text = post_request(serve(changes=EchoedChanges()), target)
    assert (status, "admin.token_file" in text) == (403, True)
    assert post_request(guarded, target)[0] == post_request(guarded, target, Authorization="Bearer wrong")[0] == 401
    assert post_request(guarded, target, Authorization="Bearer sesame", **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    status, text = post_request(guarded, target, Authorization="Bearer sesame")
    assert (status, text) == (200, "/api/suspend reason=incident&seconds=60\n")
    assert post_request(guarded, "/api/live", Authorization="Bearer sesame")[0] == 404
    assert post_request(guarded, "/metrics")[0] == 405
    assert post_request(serve(), target)[0] == 404


def test_without_a_web_ui_its_paths_are_not_found() -> None:
    server = AdminServer(HostPort("127.0.0.1", 0), list, Status())
    try:
        assert response_to(server, "/")[0] == response_to(server, "/api/live")[0] == 404
    finally:
        server.close()


def test_a_stream_sends_the_full_state_then_changes_and_ends_without_cost(serve: Serve, reader: StateReader) -> None:
    server = serve()
    assert reader.wishes == []
    with open_request(server, "/api/stream") as connection:
        coming = stream_events(connection)
        first, second = next(coming), next(coming)

    assert (reader.wishes[0].seconds, reader.wishes[0].after_ms) == (900, 0)
    assert reader.wishes[1].seconds < 10
    assert 0 < first["time_ms"] - reader.wishes[1].after_ms < 10_000
    assert second["time_ms"] > first["time_ms"]
    site = server._web_ui
    assert site is not None
    eventually(lambda: not site._streams._open)
    eventually(lambda: site._streams._feeding is not None and site._streams._feeding.done())


def test_streams_are_limited_and_share_one_state_a_second(serve: Serve, reader: StateReader) -> None:
    server = serve()
    with ExitStack() as stack:
        open_ones = [stack.enter_context(open_request(server, "/api/stream")) for _ in range(streams.MAX_STREAMS)]
        comings = [stream_events(connection) for connection in open_ones]
        for coming in comings:
            next(coming)
        status, headers, body = response_to(server, "/api/stream")
        assert (status, headers["Retry-After"]) == (503, "5")
        assert b"8 pages are open already" in body
        before = len(reader.wishes)
        for coming in comings:
            assert next(coming)
        assert len(reader.wishes) - before <= 3 * 2  # the wait is over after seconds, not at the end of a stream
        assert response_to(server, "/livez")[0] == 200
    eventually(lambda: _streams_again(server))


def _streams_again(server: AdminServer) -> bool:
    with open_request(server, "/api/stream") as connection:
        return connection.recv(12) == b"HTTP/1.1 200"


def test_stalled_stream_does_not_delay_others_and_gets_full_state_later(serve: Serve, reader: StateReader) -> None:
    reader.padding = BIG
    server = serve()
    with open_request(server, "/api/stream") as slow, open_request(server, "/api/stream") as quick:
        coming = stream_events(quick)
        site = server._web_ui
        while site is None:
            site = server._web_ui
        for _ in range(4):
            assert next(coming)
        streams_open = site._streams._open
        eventually(lambda: all(stream._waiting.qsize() <= streams._MOST_WAITING for stream in streams_open))
        assert response_to(server, "/livez")[0] == 200
        again = stream_events(slow)
        assert len(next(again)["conditions"]) == len(next(again)["conditions"])


@pytest.mark.internal_error
def test_an_error_in_the_state_ends_no_stream_and_is_logged(serve: Serve, reader: StateReader) -> None:
    server = serve()
    reader.fault = NoStateAvailable("no worker has responded yet")
    with open_request(server, "/api/stream") as connection:
        coming = stream_events(connection)
        assert next(coming) == {"text": "no worker has responded yet"}
        assert response_to(server, "/api/live")[0] == 503
        reader.fault = ZeroDivisionError("ours")
        while (told := next(coming)) == {"text": "no worker has responded yet"}:
            pass
        assert told == {"text": "internal error: ZeroDivisionError"}
        assert response_to(server, "/api/live")[0] == 500
        reader.fault = None
        while "time_ms" not in (told := next(coming)):
            pass
    assert response_to(server, "/livez")[0] == 200


def test_few_policy_look_ups_run_at_once_and_delay_no_state_request(serve: Serve) -> None:
    goes_on = threading.Event()

    def explain(topic: str) -> dict[str, list[str]]:
        assert goes_on.wait(SECONDS)
        return {"lines": [topic]}

    server = serve(explain=explain)
    assert response_to(server, "/api/live")[0] == 200
    with ExitStack() as stack:
        waiting = [stack.enter_context(open_request(server, f"/api/policy?topic=t{i}")) for i in range(4)]
        eventually(lambda: server._web_ui is not None and server._web_ui._explained == 4)
        assert response_to(server, "/api/policy?topic=more")[0] == 503
        assert response_to(server, "/api/live")[0] == 200
        goes_on.set()
        for connection in waiting:
            assert connection.recv(12) == b"HTTP/1.1 200"


def test_closing_the_admin_server_ends_its_streams(serve: Serve) -> None:
    server = serve()
    with open_request(server, "/api/stream") as connection:
        next(stream_events(connection))
        server.close()
        while connection.recv(1 << 16):
            pass
