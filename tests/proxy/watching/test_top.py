"""`sluicegate top` shows several proxies, unresponsive proxies, and names with terminal control sequences."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from rich.console import Console

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.live.flow_history import rates_of
from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.watching.admin_client import ProxyState, StateUnavailable, read_state, read_states
from sluicegate.proxy.watching.top_screen import top_screen
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.verdict import Reason
from tests.broker.ports import free_ports
from tests.proxy.live.events import NOW, rejected_event
from tests.proxy.live.test_merged_state import state_with, view_with

A, B, C = (HostPort("proxy", port) for port in (1, 2, 3))


def top_output(*answers: ProxyState, width: int = 160) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(top_screen(answers))
    return captured.get()


def row_of(read_known_state: str, name: str) -> list[str]:
    return next(line.split() for line in read_known_state.splitlines() if line.startswith(name))


def test_each_proxy_has_a_row_and_a_further_row_has_the_sum() -> None:
    flowing = dict.fromkeys(range(100, 107), 10)
    one, other = (
        state_with(view_with("billing", flowing), []),
        state_with(view_with("billing", flowing), ["the login is rejected"]),
    )

    read_known_state = top_output(ProxyState(A, one), ProxyState(B, other), ProxyState(C, None, "Connection refused"))

    assert row_of(read_known_state, "proxy:1") == ["proxy:1", "0", "10.0", "0", "B", "0", "0", "0", "serving"]
    assert "proxy:3: no response: Connection refused" in read_known_state
    assert row_of(read_known_state, "all")[2] == "20.0"
    assert "proxy_login_rejected: the login is rejected" in read_known_state
    assert row_of(read_known_state, "billing")[:2] == ["billing", "2"]
    assert "looks like nanoseconds: as milliseconds it is 0.0 s ago" in " ".join(read_known_state.split())


def test_top_lists_topics_with_their_rates_and_violations() -> None:
    view = LiveView(Counters(), None, NOW)
    for topic, batches in (("busy", 50), ("quiet", 10), ("payments", 20)):
        view.sent_to(topic, batches, batches, 1000 * batches)
    for number in range(20):
        view.sent_to(f"idle-{number}", 0, 0, 0)
    for mode in (Mode.REJECT, Mode.QUARANTINE, Mode.OBSERVE):
        view.write(rejected_event(topic="payments", mode=mode))
    view.write(rejected_event(topic=None, reason=Reason.NULL_KEY))
    view.tick(NOW + 10_000)

    read_known_state = top_output(ProxyState(A, state_with(view, [], NOW + 10_000)), width=80)

    assert row_of(read_known_state, "payments")[:7] == ["payments", "2.0", "2.0", "kB", "2", "1", "timestamp_in_future"]
    assert row_of(read_known_state, "busy") == ["busy", "5.0", "5.0", "kB", "0", "0"]
    assert row_of(read_known_state, "unknown topic id")[3:7] == ["-", "-", "1", "0"]
    table = read_known_state[read_known_state.index("Topics: rates") : read_known_state.index("Latest violations")]
    order = [table.index(name) for name in ("payments", "unknown topic id", "busy", "quiet", "idle-0")]
    assert order == sorted(order)
    assert table.count("idle-") == 4  # at most eight topics


def test_rates_exclude_the_current_incomplete_second() -> None:
    state = state_with(view_with("a", {100: 5, 101: 5, 102: 0}), [])

    assert rates_of(state["history"]).records == 5
    assert rates_of(state_with(view_with("a", {}), [])["history"]).records == 0


@pytest.mark.parametrize("name", ["[red]x[/red]", "x\x1b[31mred", "a\u202eb", "w" * 4000, ""])
def test_top_escapes_control_sequences_in_names(name: str) -> None:
    view = view_with(name, {})
    view.write(rejected_event(name, name))

    read_known_state = top_output(ProxyState(A, state_with(view, [])))

    assert all(line.isprintable() for line in read_known_state.splitlines())
    assert "[red]x[/red]" in read_known_state or name != "[red]x[/red]"


@pytest.mark.parametrize("width", [80, 100, 220])
def test_names_and_errors_are_shown_in_full_at_any_width(width: int) -> None:
    name, reason = "service-" + "x" * 120 + "-end", "a long reason: " + "y" * 150 + " and its end"
    view = view_with(name, {})

    read_known_state = top_output(ProxyState(A, state_with(view, [])), ProxyState(B, None, reason), width=width)

    assert max(map(len, read_known_state.splitlines())) <= width
    assert name.count("x") <= read_known_state.count("x")  # folded, not truncated
    assert "-end" in read_known_state.replace(" ", "").replace("\n", "") and "and its end" in " ".join(
        read_known_state.split()
    )
    assert "…" not in read_known_state


@pytest.mark.parametrize(
    ("width", "headings"),
    [
        (100, "proxy requests records produced rejected observed conns state"),
        (80, "proxy records produced rejected conns state"),
        (60, "proxy records rejected state"),
    ],
)
def test_narrow_terminal_omits_columns_instead_of_breaking_words(width: int, headings: str) -> None:
    state = state_with(view_with("billing", dict.fromkeys(range(100, 107), 123_456)), ["the login is rejected"])
    state["connections"]["count"] = 12_345
    names = ("192.168.100.100", "127.0.0.1", "sluicegate-0.sluicegate.streaming.svc")
    addresses = [HostPort(name, 19650) for name in names]

    read_known_state = top_output(*(ProxyState(each, state) for each in addresses), width=width)

    rates = read_known_state[: read_known_state.index("proxy_login_rejected")]
    assert rates.splitlines()[1].split() == headings.split()
    assert row_of(rates, "192.168.100.100")[0] == "192.168.100.100:19650"
    assert row_of(rates, "127.0.0.1")[0] == "127.0.0.1:19650"
    assert ("12,345" in rates) == ("conns" in headings)
    assert rates.split().count("attention") == 4  # one for each proxy, and one for the sum
    assert "…" not in rates


class OtherServiceHandler(BaseHTTPRequestHandler):
    """A server that responds with something else than sluicegate."""

    body = b""

    def do_GET(self) -> None:
        body = self.body
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("body", [b"{}", b"[" * 100_000, b"\xff", b"null", json.dumps({"time_ms": 1}).encode()])
def test_response_of_another_service_is_reported_as_not_sluicegate(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OtherServiceHandler, "body", body)
    server = HTTPServer(("127.0.0.1", 0), OtherServiceHandler)
    thread = Thread(target=server.handle_request)
    thread.start()
    try:
        with pytest.raises(StateUnavailable, match="not a sluicegate web UI"):
            read_state(HostPort("127.0.0.1", server.server_port), None)
    finally:
        thread.join()
        server.server_close()


def test_an_unreachable_proxy_does_not_hide_the_others() -> None:
    there = state_with(view_with("a", {}), [])
    gone = HostPort("127.0.0.1", free_ports(1))

    def read_known_state(address: HostPort, token: str | None) -> object:
        return there if address == A else read_state(address, token)

    first, second = read_states([A, gone], None, read_known_state)

    assert first.state is there
    assert (second.state, second.reason) == (None, "Connection refused")
