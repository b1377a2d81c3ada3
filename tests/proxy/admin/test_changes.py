"""POST /api/reload validates its parameters and returns the result."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from sluicegate.proxy.admin import changes as module
from sluicegate.proxy.admin.changes import ProxyChanges, Reload
from sluicegate.proxy.admin.enforcement_api import EnforcementApi
from sluicegate.proxy.reload.enforcement import Enforcement
from sluicegate.proxy.reload.reload_request import MissingFile, ReloadResult
from sluicegate.proxy.state.fleet_view import FindingCode, FleetFinding, FleetView
from sluicegate.proxy.state.history_topic import ChangeHistory
from sluicegate.proxy.state.topic_description import TopicUnavailable
from sluicegate.proxy.status.status import Status
from tests.proxy.admin.test_enforcement_api import TOPICS


async def change_response(reload: Reload | None, query: str) -> tuple[int, Any]:
    loop = asyncio.get_running_loop()
    changes = ProxyChanges(EnforcementApi(Enforcement(Status(), lambda _: None), TOPICS, loop), reload, loop)
    response = await asyncio.to_thread(changes.change, "/api/reload", query, "127.0.0.1")
    return response.status, json.loads(response.body) if response.status == 200 else response.body.decode()


@pytest.mark.parametrize(("query", "accepts"), [("", False), ("accept_removed=true", True)])
async def test_a_reload_returns_problems_and_missing_files(query: str, accepts: bool) -> None:
    asked = []

    async def reload(accepts_removed: bool) -> ReloadResult:
        asked.append(accepts_removed)
        return ReloadResult(["c.yaml:1: bad"], [MissingFile(Path("a.yaml"), ["orders"])])

    assert await change_response(reload, query) == (
        200,
        {"outcome": "rejected", "problems": ["c.yaml:1: bad"], "missing": [{"file": "a.yaml", "topics": ["orders"]}]},
    )
    assert asked == [accepts]


@pytest.mark.parametrize("query", ["accept_removed=", "accept_removed=false", "accept_removed=true&a=b", "topic=a"])
async def test_unknown_parameters_of_reload_are_rejected_and_change_nothing(query: str) -> None:
    async def reload(accepts_removed: bool) -> ReloadResult:
        raise AssertionError(accepts_removed)

    assert await change_response(reload, query) == (400, "expected /api/reload or /api/reload?accept_removed=true\n")


async def test_a_proxy_without_a_file_has_nothing_to_reload() -> None:
    status, text = await change_response(None, "")
    assert (status, "--config" in text) == (409, True)


async def test_a_long_reload_is_reported_as_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RELOAD_SECONDS", 0.01)
    released = asyncio.Event()

    async def reload(_: bool) -> ReloadResult:
        await released.wait()
        return ReloadResult()

    status, found = await change_response(reload, "")
    released.set()
    assert (status, found["outcome"]) == (200, "under way")


class _History:
    def __init__(self, fault: str | None, is_missing: bool = False) -> None:
        self.fault = fault
        self.is_missing = is_missing
        self.asked: list[int] = []

    def read(self, since_ms: int) -> ChangeHistory:
        if self.fault is not None:
            raise TopicUnavailable(self.fault)
        self.asked.append(since_ms)
        return ChangeHistory(since_ms, (), True)


class _Shared:
    def __init__(self, history: _History) -> None:
        self.history = history
        self.presence = self
        self.remedy = "create gate-presence"

    def view(self) -> FleetView:
        if self.history.fault is not None:
            raise TopicUnavailable(self.history.fault, self.history.is_missing)
        return FleetView(7, (), (FleetFinding(FindingCode.VERSIONS_DIFFER, "2 versions: 1, 2"),))


def _changes_with(history: _History | None) -> ProxyChanges:
    loop = asyncio.get_running_loop()
    enforcement = EnforcementApi(Enforcement(Status(), lambda _: None), TOPICS, loop)
    return ProxyChanges(enforcement, None, loop, None if history is None else _Shared(history))


async def test_history_of_given_days_contains_start_time() -> None:
    history = _History(None)
    response = _changes_with(history).history("days=0.5")

    (since_ms,) = history.asked
    assert abs(since_ms - (time.time() - 43_200) * 1000) < 60_000
    assert json.loads(response.body) == {"since_ms": since_ms, "is_complete": True, "changes": []}


@pytest.mark.parametrize("query", ["days=0", "days=-1", "days=nan", "days=366", "days=", "hours=1", "days=1&days=2&a"])
async def test_history_rejects_unknown_parameters(query: str) -> None:
    assert _changes_with(_History(None)).history(query).status == 400


async def test_a_history_that_cannot_be_read_has_a_problem() -> None:
    response = json.loads(_changes_with(_History("gate-state-history: Unknown topic")).history("").body)

    assert (response["changes"], response["problem"]) == (None, "gate-state-history: Unknown topic")
    assert "sluicegate doctor" in response["advice"]
    assert json.loads(_changes_with(None).history("").body) == {"changes": None}


async def test_fleet_is_read_from_presence_topic() -> None:
    assert json.loads(_changes_with(_History(None)).fleet().body) == {
        "time_ms": 7,
        "findings": [{"code": "versions_differ", "text": "2 versions: 1, 2"}],
        "proxies": [],
    }
    assert json.loads(_changes_with(None).fleet().body) == {"proxies": None}


@pytest.mark.parametrize(("is_missing", "advice"), [(True, "create gate-presence"), (False, "run sluicegate doctor")])
async def test_a_fleet_that_cannot_be_read_has_a_problem_and_advice(is_missing: bool, advice: str) -> None:
    response = _changes_with(_History("gate-presence: Unknown topic", is_missing)).fleet()

    found = json.loads(response.body)
    assert (response.status, found["proxies"], found["problem"]) == (200, None, "gate-presence: Unknown topic")
    assert advice in found["advice"]
