"""The parameters of POST /api/suspend and /api/resume, and what they return."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sluicegate.proxy.admin.enforcement_api import EnforcementApi
from sluicegate.proxy.reload.enforcement import MAX_SECONDS, MAX_SUSPENSIONS, Enforcement
from sluicegate.proxy.status.status import Status

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

    status, found = await change("/api/suspend", "reason=all&seconds=60")
    assert [each["topic"] for each in found["suspended"]] == ["orders", None]

    assert await change("/api/resume", "topic=orders") == (200, {"suspended": found["suspended"][1:]})
    assert await change("/api/resume", "") == (200, {"suspended": []})


@pytest.mark.parametrize(
    "query",
    [
        "",
        "seconds=60",
        "reason=%20&seconds=60",
        "reason=a",
        "reason=a&seconds=soon",
        "reason=a&seconds=0",
        f"reason=a&seconds={MAX_SECONDS + 1}",
        f"reason={'a' * 201}&seconds=60",
        "reason=a&seconds=60&topic=not%20legal",
        "reason=a&seconds=60&topics=orders",
        "nonsense",
    ],
)
async def test_other_parameters_are_rejected_with_the_expected_ones(query: str, change: Change) -> None:
    status, text = await change("/api/suspend", query)

    assert status == 400
    assert "/api/suspend?reason=TEXT&seconds=NUMBER[&topic=NAME]" in text
    assert await change("/api/resume", "") == (200, {"suspended": []})


async def test_too_many_suspensions_are_rejected(change: Change) -> None:
    for number in range(MAX_SUSPENSIONS):
        await change("/api/suspend", f"reason=a&seconds=60&topic=t{number}")

    status, text = await change("/api/suspend", "reason=a&seconds=60&topic=one-more")

    assert (status, "suspend all topics instead" in text) == (409, True)
