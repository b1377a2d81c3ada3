"""POST /api/suspend and /api/resume validate their parameters and return the result."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from sluicegate.proxy.admin.enforcement_api import EnforcementApi
from sluicegate.proxy.cluster.topics import ListedNames
from sluicegate.proxy.reload.enforcement import MAX_SECONDS, MAX_SUSPENSIONS, Enforcement
from sluicegate.proxy.reload.known_topics import KnownTopics, NoSuchTopic
from sluicegate.proxy.state.agreed_state import AgreedState
from sluicegate.proxy.state.change import Actor, StateChange, SuspendEnforcement
from sluicegate.proxy.state.state_topic import StateUnwritable
from sluicegate.proxy.status.status import Status
from tests.config.reading import SMALLEST, load_text

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
"""The beginnings of queries that name neither one topic nor all topics."""

TOPICS = KnownTopics(
    lambda: load_text(SMALLEST + "topics: [{match: in-a-policy}, {match: 'any*'}]"),
    lambda: ["orders"],
    lambda _name: ListedNames(
        ("orders.eu", "orders.us", *(f"t{number}" for number in range(MAX_SUSPENSIONS)), "one-more", "t")
    ),
)

NO_MATCH = "nothing* matches no topic of a policy, and none that the cluster lists for the proxy's login\n"

Change = Callable[..., Awaitable[tuple[int, Any]]]


def change_function(api: EnforcementApi) -> Change:
    async def change_response(path: str, query: str) -> tuple[int, Any]:
        response = await asyncio.to_thread(api.change, path, query, "10.1.2.3")
        return response.status, json.loads(response.body) if response.status == 200 else response.body.decode()

    return change_response


@pytest.fixture
async def change() -> Change:
    return change_function(EnforcementApi(Enforcement(Status(), lambda _: None), TOPICS, asyncio.get_running_loop()))


@dataclass
class StateTopic:
    """A state topic that applies changes at once, or that cannot be written."""

    enforcement: Enforcement
    loop: asyncio.AbstractEventLoop
    state: AgreedState = field(default_factory=AgreedState)
    written: list[StateChange] = field(default_factory=list)
    fault: str | None = None

    def commit(self, changes: Sequence[StateChange], seconds: float) -> None:
        if self.fault is not None:
            raise StateUnwritable(self.fault)
        for each in changes:
            self.state = self.state.after(each, self.state.offset)
        self.written += changes
        self.loop.call_soon_threadsafe(self.enforcement.adopt, self.state.suspensions)


@pytest.fixture
async def topic() -> StateTopic:
    return StateTopic(Enforcement(Status(), lambda _: None), asyncio.get_running_loop())


@pytest.fixture
def change_all(topic: StateTopic) -> Change:
    return change_function(EnforcementApi(topic.enforcement, TOPICS, topic.loop, topic.commit, "gate-1:19092"))


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
async def test_unknown_parameters_of_suspend_are_rejected_with_the_expected_ones(query: str, change: Change) -> None:
    status, text = await change("/api/suspend", query)

    assert status == 400
    assert "/api/suspend?topic=NAME&reason=TEXT&seconds=NUMBER" in text
    assert await change("/api/resume", "all=true") == (200, {"suspended": []})


@pytest.mark.parametrize("scope", NO_SCOPES)
async def test_resume_without_a_scope_is_rejected_and_changes_nothing(scope: str, change: Change) -> None:
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


@pytest.mark.parametrize(
    ("topic", "near"),
    [
        ("order", "; did you mean orders or orders.us or orders.eu?"),
        ("anything", ""),
        ("in-the-policy", "; did you mean in-a-policy?"),
    ],
)
@pytest.mark.parametrize("path", ["/api/suspend", "/api/resume"])
async def test_an_unknown_topic_is_an_error_with_similar_names(
    path: str, topic: str, near: str, change: Change
) -> None:
    more = "&reason=a&seconds=60" if path == "/api/suspend" else ""

    assert await change(path, f"topic={topic}{more}") == (
        404,
        f"neither a policy nor the cluster has the topic {topic}{near}\n",
    )


@pytest.mark.parametrize("topic", ["orders", "orders.eu", "in-a-policy"])
async def test_a_topic_of_the_cluster_of_a_policy_or_with_traffic_can_be_suspended(topic: str, change: Change) -> None:
    _, found = await change("/api/suspend", f"topic={topic}&reason=a&seconds=60")
    assert [each["topic"] for each in found["suspended"]] == [topic]


async def test_a_pattern_stands_for_the_topics_that_it_matches_and_a_preview_changes_nothing(change: Change) -> None:
    query = "reason=a&seconds=60&topic=orders*"
    assert await change("/api/suspend", f"{query}&preview=true") == (
        200,
        {"topics": ["orders", "orders.eu", "orders.us"]},
    )
    assert await change("/api/resume", "topic=orders&preview=false") == (200, {"suspended": []})

    _, found = await change("/api/suspend", query)
    assert [each["topic"] for each in found["suspended"]] == ["orders", "orders.eu", "orders.us"]
    _, found = await change("/api/resume", "topic=/orders[.].*/")
    assert [each["topic"] for each in found["suspended"]] == ["orders"]


async def test_a_pattern_without_topics_or_with_too_many_changes_nothing(change: Change) -> None:
    status, text = await change("/api/suspend", "reason=a&seconds=60&topic=nothing*")
    assert (status, text) == (404, NO_MATCH)

    status, _ = await change("/api/suspend", "reason=a&seconds=60&topic=*")
    assert status == 409
    assert await change("/api/resume", "all=true&preview=true") == (200, {"topics": [None]})
    assert await change("/api/resume", "topic=orders") == (200, {"suspended": []})


def test_a_topic_that_the_login_may_not_describe_is_accepted() -> None:
    topics = KnownTopics(
        lambda: load_text(SMALLEST), list, lambda name: ListedNames(("a",), is_hidden=name == "hidden")
    )

    assert topics.matching("hidden") == ["hidden"]
    assert topics.doubt("hidden") is None
    with pytest.raises(NoSuchTopic, match="neither a policy nor the cluster has the topic nosuch"):
        topics.matching("nosuch")


@pytest.mark.parametrize("topic", ["nosuch", "orders.*"])
async def test_a_topic_name_is_accepted_while_the_cluster_does_not_respond(topic: str) -> None:
    unlisted = ListedNames(reason="no broker responded within 3 s")
    topics = KnownTopics(lambda: load_text(SMALLEST), list, lambda _name: unlisted)
    if topic == "nosuch":
        assert topics.matching(topic) == [topic]
    else:
        with pytest.raises(NoSuchTopic, match="the cluster was not queried: no broker responded within 3 s"):
            topics.matching(topic)


async def test_with_a_state_topic_a_change_is_written_for_all_proxies_with_its_actor(
    topic: StateTopic, change_all: Change
) -> None:
    status, found = await change_all("/api/suspend", "topic=orders&reason=a&seconds=60")

    (written,) = topic.written
    assert (written.actor, written.proxy) == (Actor("an administrator", "10.1.2.3"), "gate-1:19092")
    assert isinstance(written.operation, SuspendEnforcement)
    assert (status, [(each["topic"], each["scope"]) for each in found["suspended"]]) == (200, [("orders", "cluster")])
    assert await change_all("/api/resume", "all=true") == (200, {"suspended": []})


async def test_proxy_scope_changes_only_this_proxy(topic: StateTopic, change_all: Change) -> None:
    await change_all("/api/suspend", "topic=orders&reason=a&seconds=60")
    _, found = await change_all("/api/suspend", "topic=orders&reason=b&seconds=60&scope=proxy")
    assert [each["scope"] for each in found["suspended"]] == ["proxy", "cluster"]

    _, found = await change_all("/api/resume", "all=true")
    assert [each["scope"] for each in found["suspended"]] == ["proxy"]
    assert await change_all("/api/resume", "all=true&scope=proxy") == (200, {"suspended": []})


async def test_a_topic_that_cannot_be_written_is_a_retriable_error_and_changes_nothing(
    topic: StateTopic, change_all: Change
) -> None:
    topic.fault = "state.topic state cannot be written: no broker"

    assert await change_all("/api/suspend", "topic=orders&reason=a&seconds=60") == (
        503,
        "state.topic state cannot be written: no broker; try again, or change only this proxy (scope=proxy)\n",
    )
    assert topic.enforcement.suspensions == ()


async def test_workers_that_do_not_respond_are_an_error() -> None:
    async def all_in_force() -> None:
        raise TimeoutError

    enforcement = Enforcement(Status(), lambda _: None, all_in_force=all_in_force)
    change = change_function(EnforcementApi(enforcement, TOPICS, asyncio.get_running_loop()))

    status, text = await change("/api/suspend", "topic=orders&reason=a&seconds=60")
    assert (status, "not all workers have applied this" in text) == (503, True)


async def test_scope_cluster_without_a_state_topic_is_rejected(change: Change) -> None:
    status, text = await change("/api/suspend", "topic=orders&reason=a&seconds=60&scope=cluster")

    assert (status, "requires state.topic" in text) == (409, True)
    assert (await change("/api/suspend", "topic=orders&reason=a&seconds=60&scope=world"))[0] == 400
