"""A running proxy with two workers shows its state as JSON, as a stream, and to `top`, `who` and `explain`."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.proxy.cli.test_commands import sluicegate
from tests.webui.proxy_under_load import HOSTILE, proxy_under_load


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    with proxy_under_load(tmp_path_factory.mktemp("proxy")) as running:
        eventually(
            lambda: len(live_state_of_proxy(running)["violation_groups"]) >= 6, what="producers that do things wrong"
        )
        yield running
        assert "worker ended" not in running.log()


def live_state_of_proxy(proxy: ProxyProcess) -> dict[str, Any]:
    """Return the state of both workers. On a busy machine one worker may be late, which the state reports."""
    state: dict[str, Any] = {}

    def has_both() -> bool:
        status, body = proxy.get("/api/live")
        assert status == 200, body
        state.update(json.loads(body))
        assert state["proxies"] == 2 or any(each["condition"] == "worker_unresponsive" for each in state["conditions"])
        return bool(state["proxies"] == 2)

    eventually(has_both, what="both workers in one look")
    return state


def address(proxy: ProxyProcess) -> str:
    return proxy.admin.removeprefix("http://")


def test_two_workers_are_merged_and_match_the_metrics(proxy: ProxyProcess) -> None:
    def agrees_with_metrics() -> bool:
        before = proxy.metric("sluicegate_rejected_batches_total")
        rejected = live_state_of_proxy(proxy)["totals"]["rejected"]
        return before <= rejected <= proxy.metric("sluicegate_rejected_batches_total")

    eventually(agrees_with_metrics, what="what the metrics say")
    eventually(
        lambda: sum(live_state_of_proxy(proxy)["history"]["records"]) > 0, what="a second in which something flowed"
    )
    state = live_state_of_proxy(proxy)
    assert state["totals"]["records"] >= sum(state["history"]["records"])
    assert sum(state["distances"]["behind"].values()) > 0
    assert state["connections"]["by_state"].keys() <= {
        "connecting",
        "open",
        "half_closed",
        "closing",
        "draining",
        "ended",
    }
    assert {broker["name"] for broker in state["brokers"]} == {"bootstrap", "broker 1", "broker 2"}
    listener = next(broker["listener"] for broker in state["brokers"] if broker["name"] == "broker 1")
    assert listener == f"127.0.0.1:{proxy.broker_port(1)}"


def test_a_policy_has_its_configuration_lines(proxy: ProxyProcess) -> None:
    file = str(proxy.folder / "sluicegate.yaml")

    lines = json.loads(proxy.get("/api/policy?topic=orders.eu")[1])["lines"]

    assert lines == sluicegate("explain", file, "orders.eu").stdout.splitlines()
    assert "topics.0 decides" in lines[0] or "topics[0] decides" in lines[0]


def test_a_stream_sends_later_states_as_changes(proxy: ProxyProcess) -> None:
    with urllib.request.urlopen(proxy.admin + "/api/stream", timeout=60) as stream:
        lines = (line for line in stream if line.startswith(b"data: "))
        first, second = (json.loads(next(lines)[6:]) for _ in range(2))

    assert second["time_ms"] > first["time_ms"]
    assert len(second["history"]["records"]) < 20


def test_top_prints_one_table(proxy: ProxyProcess) -> None:
    def is_shown_by_top() -> bool:
        done = sluicegate("top", "--once", address(proxy))
        assert done.returncode == 0
        assert all(line.isprintable() for line in done.stdout.splitlines())
        return "legacy-billing" in done.stdout

    eventually(is_shown_by_top, 60, "both workers in one look")
    done = sluicegate("top", "--once", "--json", address(proxy), "127.0.0.1:1")
    told = json.loads(done.stdout)
    assert told[address(proxy)]["proxies"] == 2 or told[address(proxy)]["conditions"]
    assert "refused" in told["127.0.0.1:1"]["not_shown"]
    assert sluicegate("top", "--once", "127.0.0.1:1").returncode == 1


@pytest.mark.long
def test_the_command_who_prints_the_same_from_a_proxy_and_from_its_events(proxy: ProxyProcess) -> None:
    for where in (("--admin", address(proxy)), ("--events", str(proxy.folder / "violations.jsonl"))):
        told = ""

        def is_client_listed(where: tuple[str, str] = where) -> bool:
            nonlocal told
            told = sluicegate("who", "payments", *where).stdout
            return "legacy-billing (" in told

        eventually(is_client_listed, 60, "both workers in one look")
        assert "looks like nanoseconds: as milliseconds it is" in told
        assert all(line.isprintable() for line in told.splitlines())
    found: list[dict[str, object]] = []

    def are_both_clients_listed() -> bool:
        found[:] = json.loads(sluicegate("who", "payments", "--admin", address(proxy), "--json").stdout)
        return {"legacy-billing", HOSTILE[0]} <= {one["client_id"] for one in found}

    eventually(are_both_clients_listed, 60, "both workers in one look")
    assert {one["topic"] for one in found} == {"payments"}
    both = sluicegate("who", "payments", "--events", "a", "--admin", "b")
    assert (both.returncode, "not both" in both.stderr) == (2, True)
    gone = sluicegate("who", "payments", "--events", str(Path("/nowhere.jsonl")))
    assert (gone.returncode, "cannot be read" in gone.stderr) == (1, True)
