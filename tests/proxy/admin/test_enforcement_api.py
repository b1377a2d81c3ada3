"""The parameters of POST /api/suspend and /api/resume, and what they return."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sluicegate.proxy.admin.enforcement_api import EnforcementApi
from sluicegate.proxy.reload.enforcement import MAX_SECONDS, MAX_SUSPENSIONS, Enforcement
from sluicegate.proxy.status.status import Status

NO_SCOPES = (
    "",
    "topic=&",
    "topic=%20&",
    "all=&",
    "all=false&",
    "all=1&",
    "all=true&topic=orders&",
    "all=true&topic=&",
    "topic=a&topic=b&",
)
"""Beginnings of a query that name neither one topic nor all topics."""

Change = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
async def change() -> Change:
    api = EnforcementApi(Enforcement(Status(), lambda _: None), asyncio.get_running_loop())

    async def changed(path: str, query: str) -> tuple[int, Any]:
        response = await asyncio.to_thread(api.change, path, query)
        return response.status, json.loads(response.body) if response.status == 200 else response.body.decode()

    return changed


async def test_a_suspension_is_listed_until_it_is_resumed(change: Change) -> None:
    status, found = await change("/api/suspend", "topic=orders&reason=incident%207&seconds=60")
    assert (status, [(each["topic"], each["reason"]) for each in found["suspended"]]) == (
        200,
        [("orders", "incident 7")],
    )

    status, found = await change("/api/suspend", "all=true&reason=incident%208&seconds=60")
    assert [each["topic"] for each in found["suspended"]] == ["orders", None]

    assert await change("/api/resume", "topic=orders") == (200, {"suspended": found["suspended"][1:]})
    assert await change("/api/resume", "all=true") == (200, {"suspended": []})


@pytest.mark.parametrize(
    "query",
    [
        "",
        "topic=t&seconds=60",
        "topic=t&reason=%20&seconds=60",
        "topic=t&reason=&seconds=60",
        "topic=t&reason=a",
        "topic=t&reason=a&seconds=soon",
        "topic=t&reason=a&seconds=",
        "topic=t&reason=a&seconds=0",
        f"topic=t&reason=a&seconds={MAX_SECONDS + 1}",
        f"topic=t&reason={'a' * 201}&seconds=60",
        "topic=not%20legal&reason=a&seconds=60",
        "topic=t&reason=a&seconds=60&topics=orders",
        "nonsense",
        *(f"{scope}reason=a&seconds=60" for scope in NO_SCOPES),
    ],
)
async def test_other_parameters_are_rejected_with_the_expected_ones(query: str, change: Change) -> None:
    status, text = await change("/api/suspend", query)

    assert status == 400
    assert "/api/suspend?topic=NAME&reason=TEXT&seconds=NUMBER" in text
    assert await change("/api/resume", "all=true") == (200, {"suspended": []})


@pytest.mark.parametrize("scope", NO_SCOPES)
async def test_resume_rejects_a_scope_that_is_not_said_and_changes_nothing(scope: str, change: Change) -> None:
    _, before = await change("/api/suspend", "topic=orders&reason=a&seconds=60")

    assert (await change("/api/resume", scope.removesuffix("&")))[0] == 400
    _, after = await change("/api/suspend", "topic=orders&reason=a&seconds=60")
    assert [each["topic"] for each in after["suspended"]] == [each["topic"] for each in before["suspended"]]


async def test_too_many_suspensions_are_rejected(change: Change) -> None:
    for number in range(MAX_SUSPENSIONS):
        await change("/api/suspend", f"reason=a&seconds=60&topic=t{number}")

    status, text = await change("/api/suspend", "reason=a&seconds=60&topic=one-more")
    assert (status, "or suspend all topics" in text) == (409, True)

    status, found = await change("/api/suspend", "reason=a&seconds=60&all=true")
    assert (status, len(found["suspended"])) == (200, MAX_SUSPENSIONS + 1)
    status, _ = await change("/api/suspend", "reason=b&seconds=60&topic=t0")
    assert status == 200, "a suspended topic's end time can always be changed"
