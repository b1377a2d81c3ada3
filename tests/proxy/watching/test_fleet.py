"""Two proxies as one, and proxies that do not respond, respond slowly, or respond with something else."""

import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sluicegate.config.values.address import HostPort
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.proxy.admin.endpoint import AdminServer
from sluicegate.proxy.live.live_snapshot import EVERYTHING, LiveQuery
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.network.tls.contexts import context_for_fleet
from sluicegate.proxy.reporting.metrics.collection import MetricsCollector
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.watching.admin_client import StateUnavailable
from sluicegate.proxy.watching.fleet import Fleet
from sluicegate.proxy.watching.fleet_metrics import fleet_metrics
from sluicegate.proxy.webui.access import Access
from sluicegate.proxy.webui.site import Site
from tests.broker.eventually import eventually
from tests.proxy.live.events import NOW
from tests.proxy.live.test_merged_state import state_with, view_with

A, B = HostPort("a", 9650), HostPort("b", 9650)


class ScriptedProxies:
    """The states of the proxies A and B, and a clock that the test sets."""

    def __init__(self) -> None:
        self.states: dict[HostPort, LiveState | Exception] = {
            A: state_with(view_with("billing", {100: 10, 101: 10, 102: 0}), []),
            B: state_with(view_with("billing", {100: 5, 101: 5, 102: 0}), ["the login is rejected"], NOW + 1000),
        }
        self.now = 100.0
        self.tokens: list[tuple[HostPort, str | None]] = []
        self.slow = threading.Event()
        self.slow.set()

    def read(self, address: HostPort, token: str | None, _most_bytes: int) -> LiveState:
        self.tokens.append((address, token))
        if address == B:
            self.slow.wait(30)
        state = self.states[address]
        if isinstance(state, Exception):
            raise state
        return state


@pytest.fixture
def proxies() -> ScriptedProxies:
    return ScriptedProxies()


@pytest.fixture
def fleet(proxies: ScriptedProxies) -> Iterator[Fleet]:
    fleet = Fleet(lambda: [A, B], lambda proxy: f"token of {proxy.host}", proxies.read, lambda: proxies.now)
    yield fleet
    proxies.slow.set()
    fleet.close()


def test_fleet_metrics_show_reachability_and_age_of_each_proxy(fleet: Fleet, proxies: ScriptedProxies) -> None:
    def fleet_metric_values() -> dict[str, dict[str, float]]:
        found = text_string_to_metric_families(generate_latest(MetricsCollector(lambda: fleet_metrics(fleet))).decode())
        return {
            f.name.removeprefix("sluicegate_fleet_proxy_"): {s.labels["proxy"]: s.value for s in f.samples}
            for f in found
        }

    both = {"a:9650": 1.0, "b:9650": 1.0}
    seen_at = {"a:9650": NOW / 1000, "b:9650": (NOW + 1000) / 1000}
    ages = {"a:9650": 0.0, "b:9650": 0.0}
    assert fleet_metric_values() == {
        "reachable": both,
        "serving": both,
        "last_seen_timestamp_seconds": seen_at,
        "state_age_seconds": ages,
    }

    proxies.states[B] = StateUnavailable("connection refused")
    proxies.now += 15
    after = fleet_metric_values()

    assert after["reachable"] == after["serving"] == both | {"b:9650": 0.0}
    assert after["last_seen_timestamp_seconds"] == seen_at
    assert after["state_age_seconds"] == ages | {"b:9650": 15.0}


def test_fleet_state_has_the_sum_and_each_proxy(fleet: Fleet, proxies: ScriptedProxies) -> None:
    state = fleet.live_state(EVERYTHING)

    assert state["history"]["records"] == [15, 15, 0]
    assert [(one["address"], one["state"], one["name"]) for one in state["fleet"]] == [
        ("a:9650", "serving", "proxy:19092"),
        ("b:9650", "needs attention", "proxy:19092"),
    ]
    assert [one["rates"] and one["rates"]["records"] for one in state["fleet"]] == [10, 5]
    assert [each["detail"] for each in state["conditions"]] == ["b:9650: the login is rejected"]
    assert state["time_ms"] == NOW  # the older one: no change of either proxy is missed
    assert len({each["id"] for each in state["violations"]}) == 2
    assert sorted(proxies.tokens, key=str) == [(A, "token of a"), (B, "token of b")]


def test_a_fleet_query_returns_only_new_entries(fleet: Fleet) -> None:
    state = fleet.live_state(LiveQuery(2, NOW + 1, 1))

    assert (state["history"]["begin"], state["history"]["records"]) == (101, [15, 0])
    assert state["violations"] == []


def test_unreachable_proxy_is_reported_and_excluded_from_the_sum_after_10_s(
    fleet: Fleet, proxies: ScriptedProxies
) -> None:
    fleet.live_state(EVERYTHING)
    proxies.states[B] = StateUnavailable("Connection refused")
    proxies.now += 5

    state = fleet.live_state(EVERYTHING)
    assert state["history"]["records"] == [15, 15, 0]
    assert state["fleet"][1]["reason"] == "Connection refused"
    proxies.now += 6
    state = fleet.live_state(EVERYTHING)

    assert state["history"]["records"] == [10, 10, 0]
    assert (state["state"], state["fleet"][1]["state"]) == ("needs attention", "unreachable")
    assert state["fleet"][1]["rates"] is None
    (condition,) = state["conditions"]
    assert (condition["condition"], condition["detail"]) == ("proxy_unreachable", "b:9650: Connection refused")


def test_hanging_proxy_is_queried_once_and_does_not_delay_others(fleet: Fleet, proxies: ScriptedProxies) -> None:
    proxies.slow.clear()
    for _ in range(3):
        state = fleet.live_state(EVERYTHING)
        assert state["history"]["records"] == [10, 10, 0]
        assert state["fleet"][1]["reason"] == "no response yet"
        proxies.now += 2
    assert [proxy for proxy, _ in proxies.tokens].count(B) == 1


def test_a_fleet_without_reachable_proxies_is_not_serving(proxies: ScriptedProxies) -> None:
    def raise_name_not_known() -> list[HostPort]:
        raise OSError(-2, "Name or service not known")

    proxies.states = {A: StateUnavailable("401 Token required"), B: StateUnavailable("gone")}
    for find in (raise_name_not_known, lambda: [A, B]):
        fleet = Fleet(find, lambda _: None, proxies.read)
        try:
            state = fleet.live_state(EVERYTHING)
        finally:
            fleet.close()
        assert state["state"] == "not serving"
        assert {each["condition"] for each in state["conditions"]} == {"proxy_unreachable"}
    assert [each["reason"] for each in state["fleet"]] == ["401 Token required", "gone"]


def test_an_invalid_state_or_token_of_one_proxy_affects_no_other(proxies: ScriptedProxies) -> None:
    broken: LiveState = {**state_with(view_with("a", {}), []), "history": {"begin": "x"}}  # type: ignore[typeddict-item]  # that is broken
    proxies.states[A] = broken

    def token_of(proxy: HostPort) -> str:
        if proxy == B:
            raise PasswordUnreadable("--proxy-token-file", "/nowhere cannot be read")
        return "t"

    fleet = Fleet(lambda: [A, B], token_of, proxies.read)
    try:
        reasons = [str(each["reason"]) for each in fleet.live_state(EVERYTHING)["fleet"]]
    finally:
        fleet.close()
    assert reasons[0].startswith("the state has another format (")
    assert reasons[1] == "--proxy-token-file: /nowhere cannot be read"


def policy(topic: str, *lines: str) -> dict[str, Any]:
    return {"topic": topic, "lines": list(lines), "effective": [], "source": None}


def test_policy_differences_between_proxies_are_shown() -> None:
    """The last changes of policies are compared too: a change in two proxies is listed once, with its latest time."""
    servers = []
    for time_ms, text in enumerate(("one", "other", "one")):
        site = Site(
            Access(HostPort("127.0.0.1", 1), None),
            lambda _: state_with(view_with("a", {}), []),
            lambda topic, text=text: policy(topic, text),
            read_reloads=lambda time_ms=time_ms, text=text: [{"time_ms": time_ms, "looser": [text]}],
        )
        servers.append(AdminServer(HostPort("127.0.0.1", 0), list, Status(), lambda site=site: site))
    first, second, third = (HostPort("127.0.0.1", server.port) for server in servers)
    fleets = [Fleet(lambda found=found: found, lambda _: None) for found in ([first, third], [first, second])]
    try:
        for fleet in fleets:
            fleet.live_state(EVERYTHING)
        assert fleets[0].explain("orders") == policy("orders", "one")
        assert fleets[1].explain("orders")["lines"] == [f"{first}:", "one", f"{second}:", "other"]
        assert fleets[0].policy_changes() == [{"time_ms": 2, "looser": ["one"], "proxies": [str(first), str(third)]}]
        assert [change["proxies"] for change in fleets[1].policy_changes()] == [[str(second)], [str(first)]]
    finally:
        for server in servers:
            server.close()
        for fleet in fleets:
            fleet.close()


def test_the_web_ui_is_served_with_tls(tmp_path: Path, fleet: Fleet) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    for part in issued.cert_chain_pems:
        part.write_to_path(certificate, append=True)
    issued.private_key_pem.write_to_path(key)
    site = Site(Access(HostPort("127.0.0.1", 1), None), fleet.live_state, fleet.explain)
    tls = context_for_fleet(str(certificate), str(key))
    server = AdminServer(HostPort("127.0.0.1", 0), list, Status(), lambda: site, tls.current)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    try:
        connection = http.client.HTTPSConnection("localhost", server.port, context=context, timeout=30)
        connection.request("GET", "/api/live")
        state = json.loads(connection.getresponse().read())
        assert [each["address"] for each in state["fleet"]] == ["a:9650", "b:9650"]
        connection.close()
        connection = http.client.HTTPSConnection("localhost", server.port, context=context, timeout=30)
        connection.request("GET", "/api/stream")
        response = connection.getresponse()
        lines = (line for line in response if line.startswith(b"data: "))
        assert [json.loads(next(lines)[6:])["complete"] for _ in range(2)] == [True, False]
        response.close()
        connection.close()
        web_ui = server._web_ui
        assert web_ui is not None
        eventually(lambda: not web_ui._streams._open, what="the end of the stream")
        plain = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        plain.request("GET", "/livez")
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            plain.getresponse()
        plain.close()
    finally:
        server.close()
