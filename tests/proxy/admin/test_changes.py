"""The parameters of POST /api/reload, and what it returns."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sluicegate.proxy.admin import changes as module
from sluicegate.proxy.admin.changes import ProxyChanges, Reload
from sluicegate.proxy.admin.enforcement_api import EnforcementApi
from sluicegate.proxy.reload.enforcement import Enforcement
from sluicegate.proxy.reload.reload_request import MissingFile, ReloadResult
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
async def test_other_parameters_are_rejected_and_change_nothing(query: str) -> None:
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
