"""The states of several proxies are combined into a state like that of one proxy."""

from dataclasses import replace
from threading import Lock

from sluicegate.config.topics import TopicKeys
from sluicegate.protocol.api import ApiKey
from sluicegate.proxy.live.flow_history import Flow
from sluicegate.proxy.live.live_snapshot import EVERYTHING, LiveQuery, LiveSources, live_state
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.live.merged_state import merged_state
from sluicegate.proxy.live.traffic import MAX_TOPICS
from sluicegate.proxy.reporting.metrics.broker_errors import BrokerErrorCounts
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.status.condition import Condition, ServingState
from sluicegate.proxy.status.status import ActiveCondition
from sluicegate.validation.from_keys import compile_policies
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.rulebook import Rulebook
from tests.proxy.live.events import NOW, rejected_event


def failed_login_condition(detail: str) -> ActiveCondition:
    return ActiveCondition(Condition.PROXY_LOGIN_REJECTED, ServingState.NEEDS_ATTENTION, "", detail, NOW)


def state_with(
    view: LiveView,
    problems: list[str],
    now_ms: int = NOW,
    errors: BrokerErrorCounts | None = None,
    query: LiveQuery = EVERYTHING,
) -> LiveState:
    rules = RulesInForce(Rulebook(compile_policies(TopicKeys(after_max_ms=1000))))
    brokers = [(1, None, "proxy:19101", "reachable")]
    return live_state(
        LiveSources(
            "proxy:19092",
            lambda: "a-cluster",
            view,
            errors or BrokerErrorCounts(Counters(), Lock(), lambda: NOW),
            (),
            rules,
            (),
            lambda: brokers,
            lambda: [failed_login_condition(detail) for detail in problems],
            lambda: now_ms,
        ),
        query,
    )


def test_checked_broker_state_of_one_worker_overrides_unchecked_states() -> None:
    state = state_with(view_with("a", {1: 1}), [])
    bootstrap, broker = state["brokers"]

    def merged_broker_states(*states: str) -> list[str]:
        several: list[LiveState] = [{**state, "brokers": [bootstrap, {**broker, "state": each}]} for each in states]
        return [each["state"] for each in merged_state(several)["brokers"]]

    assert merged_broker_states("not checked", "reachable") == ["reachable", "reachable"]
    assert merged_broker_states("reachable", "unreachable", "not checked") == ["reachable", "unreachable"]


def test_broker_errors_of_one_client_at_two_workers_are_added() -> None:
    states = []
    for worker in (1, 2):
        errors = BrokerErrorCounts(Counters(), Lock(), lambda worker=worker: NOW + worker)
        errors.broker_error(ClientIdentity("192.0.2.1:5", "billing"), ApiKey.METADATA, 29)
        states.append(state_with(LiveView(Counters(), None, NOW), [], errors=errors))

    (error,) = merged_state(states)["broker_errors"]

    assert error == {
        "client_id": "billing",
        "api": "Metadata",
        "error": "TOPIC_AUTHORIZATION_FAILED",
        "responses": 2,
        "last_ms": NOW + 2,
    }


def view_with(client_id: str, seconds: dict[int, int]) -> LiveView:
    view = LiveView(Counters(), None, NOW)
    view.write(rejected_event(client_id))
    total = 0
    for second, records in seconds.items():
        total += records
        view.history.add(second, Flow(records=total))
    return view


def test_merging_single_state_returns_it_unchanged() -> None:
    state = state_with(view_with("a", {1: 1}), [])

    assert merged_state([state]) == state


def test_histories_and_lists_of_two_proxies_are_merged() -> None:
    one = state_with(view_with("a", {100: 1, 101: 2, 102: 3}), ["what is wrong"])
    other = state_with(view_with("a", {101: 10, 102: 20, 103: 30}), ["what is wrong"], NOW + 5)

    state = merged_state([one, other])

    assert (state["history"]["begin"], state["history"]["records"]) == (100, [1, 12, 23, 30])
    assert state["proxies"] == 2
    assert state["time_ms"] == NOW + 5
    assert [each["detail"] for each in state["conditions"]] == ["what is wrong"]
    (group,) = state["violation_groups"]
    assert (group["batches"], group["bad_records"]) == (2, 10)
    assert len(state["violations"]) == 2
    assert sum(state["distances"]["rejected_ahead"].values()) == 2
    assert [bounds["name"] for bounds in state["bounds"]] == ["defaults", "payments"]
    assert [broker["name"] for broker in state["brokers"]] == ["bootstrap", "broker 1"]


def test_merging_new_process_keeps_existing_histories() -> None:
    one = state_with(view_with("a", {100: 1, 101: 2}), [])
    new = state_with(LiveView(Counters(), None, NOW), [])

    assert merged_state([one, new])["history"] == one["history"]
    assert merged_state([new, new])["history"] == new["history"]


def test_merged_violation_groups_are_per_client_and_sorted_by_batches() -> None:
    worse = view_with("b", {100: 1})
    worse.write(rejected_event("b"))

    state = merged_state([state_with(view_with("a", {100: 1}), []), state_with(worse, [])])

    assert [(one["client_id"], one["batches"]) for one in state["violation_groups"]] == [("b", 2), ("a", 1)]


def test_merged_topics_are_unique_and_oldest_are_dropped() -> None:
    states = []
    for worker in range(2):
        view = LiveView(Counters(), None, NOW)
        view.tick(NOW + worker)
        for name in ("orders", f"of-{worker}"):
            view.topics.seen(name)
        states.append(state_with(view, []))

    assert merged_state(states)["topics"] == [
        {"name": "of-0", "first_ms": NOW, "last_ms": NOW, "rates": None},
        {"name": "orders", "first_ms": NOW, "last_ms": NOW + 1, "rates": None},
        {"name": "of-1", "first_ms": NOW + 1, "last_ms": NOW + 1, "rates": None},
    ]

    view.tick(NOW + 2)
    for number in range(MAX_TOPICS):
        view.topics.seen(f"t-{number}")
    view.tick(NOW + 3)
    view.topics.seen("orders")
    names = [topic["name"] for topic in state_with(view, [])["topics"]]
    assert (len(names), names[0], names[-1]) == (MAX_TOPICS, "t-1", "orders")
    assert [each["name"] for each in state_with(view, [], query=replace(EVERYTHING, after_ms=NOW + 2))["topics"]] == [
        "orders"
    ]
