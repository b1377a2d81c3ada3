"""Conditions begin and end, the state follows them, and several workers' conditions are those of one process."""

from dataclasses import replace
from typing import Any

import pytest

from sluicegate.proxy.reporting.waiting_clients import WaitingNames
from sluicegate.proxy.status.condition import TYPES, Condition, ServingState
from sluicegate.proxy.status.status import ActiveCondition, Status, gauges_of, not_refuted, of_workers, state_of
from tests.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def status(clock: Clock) -> Status:
    status = Status(clock, lambda: int(clock.now * 1000))
    status.end(Condition.STARTING)
    return status


def condition_names(status: Status) -> list[str]:
    return [str(each) for each in status.active()]


def test_process_starts_as_not_serving() -> None:
    status = Status()

    assert status.not_ready() == "starting"
    assert state_of(status.active()) is ServingState.NOT_SERVING
    status.end(Condition.STARTING)
    assert status.not_ready() is None
    assert state_of(status.active()) is ServingState.SERVING


def test_restarted_worker_needs_attention_but_the_proxy_stays_ready(status: Status) -> None:
    status.begin(Condition.WORKER_RESTARTED, "worker 2: exit code -9", "worker 2")
    status.begin(Condition.WORKER_RESTARTED, "worker 3: exit code -9", "worker 3")

    assert state_of(status.active()) is ServingState.NEEDS_ATTENTION
    assert status.not_ready() is None
    status.end(Condition.WORKER_RESTARTED, "worker 2")
    assert condition_names(status) == ["worker_restarted: worker 3: exit code -9"]
    status.end(Condition.WORKER_RESTARTED)
    assert condition_names(status) == []


def test_set_all_starts_keeps_and_ends_conditions_by_subject(status: Status, clock: Clock) -> None:
    failing = Condition.QUARANTINE_FAILING
    status.set_all(failing, {"topic a": "topic a: unknown", "topic b": "topic b: timed out"})
    clock.now += 5
    status.set_all(failing, {"topic b": "topic b: not authorized", "topic c": "topic c: unknown"})

    assert [(each.detail, each.since_ms) for each in status.active()] == [
        ("topic b: not authorized", 100_000),
        ("topic c: unknown", 105_000),
    ]
    status.set_all(failing, {})
    assert condition_names(status) == []


def test_a_condition_with_a_new_detail_keeps_its_start_time(status: Status, clock: Clock) -> None:
    status.set(Condition.PROXY_LOGIN_REJECTED, "wrong password")
    clock.now += 5
    status.set(Condition.PROXY_LOGIN_REJECTED, "unknown mechanism")

    (active,) = status.active()
    assert (active.detail, active.since_ms) == ("unknown mechanism", 100_000)
    status.set(Condition.PROXY_LOGIN_REJECTED, None)
    assert condition_names(status) == []


def test_worker_restarted_condition_ends_a_minute_after_its_last_report(status: Status, clock: Clock) -> None:
    status.begin(Condition.WORKER_RESTARTED, "3 restarts")
    clock.now += 59
    status.begin(Condition.WORKER_RESTARTED, "4 restarts")
    clock.now += 59
    status.beat()
    assert condition_names(status) == ["worker_restarted: 4 restarts"]
    clock.now += 2
    status.beat()
    assert condition_names(status) == []


class WatchedDetails(dict[str, str]):
    """Details by subject that record the status's state at each read."""

    def __init__(self, status: Status, seen: list[ServingState], **details: str) -> None:
        super().__init__(details)
        self._read = lambda: seen.append(state_of(status.active()))

    def items(self) -> Any:
        self._read()
        return super().items()

    def __iter__(self) -> Any:
        self._read()
        return super().__iter__()


def test_exchanging_conditions_is_atomic_for_readers(status: Status) -> None:
    """Kubernetes sends clients to a replica whose readiness is 200 once."""
    status.begin(Condition.UPSTREAM_UNREACHABLE, "no broker responds", "kafka:9092")
    seen: list[ServingState] = []

    status.exchange(
        {
            Condition.UPSTREAM_UNREACHABLE: WatchedDetails(status, seen),
            Condition.NO_BROKER_LISTED: WatchedDetails(status, seen, kafka="kafka responds, but lists no broker"),
        }
    )

    assert len(seen) == 4 and set(seen) == {ServingState.NOT_SERVING}
    assert condition_names(status) == ["no_broker_listed: kafka responds, but lists no broker"]


def test_condition_metric_has_a_series_for_each_condition(status: Status) -> None:
    status.begin(Condition.NO_BROKER_LISTED, "no broker", "kafka")

    gauges = gauges_of(status.active())

    assert {key for key, value in gauges.items() if value} == {("no_broker_listed", "kafka")}
    assert {condition for condition, _ in gauges} == {each.value for each in Condition}


def test_worst_condition_is_listed_first(status: Status) -> None:
    status.begin(Condition.CONFIGURATION_REJECTED, "an unknown key")
    status.begin(Condition.UPSTREAM_UNREACHABLE, "no broker responds")

    assert [each.condition for each in status.active()] == [
        Condition.UPSTREAM_UNREACHABLE,
        Condition.CONFIGURATION_REJECTED,
    ]
    assert status.not_ready() == "no broker responds"


def test_process_is_not_live_while_its_event_loop_is_stuck(status: Status, clock: Clock) -> None:
    assert status.not_live() is None
    clock.now += 11

    assert status.not_live() == "the event loop has not moved for 11 s"
    assert condition_names(status) == ["event_loop_stuck: the event loop has not moved for 11 s"]
    status.beat()
    assert status.not_live() is None


def test_number_of_conditions_and_their_text_length_are_bounded(status: Status) -> None:
    for number in range(1000):
        status.begin(Condition.WORKER_UNRESPONSIVE, "x" * 100_000, f"topic-{number}")

    active = status.active()
    assert len(active) == 100
    assert all(len(each.detail) < 400 for each in active)


def active_condition(condition: Condition, detail: str) -> ActiveCondition:
    return ActiveCondition(condition, condition.type.state, "", detail, 1)


def test_process_stays_ready_while_one_worker_serves() -> None:
    broken = [active_condition(Condition.UPSTREAM_UNREACHABLE, "no broker responds")]

    (is_condition_shown,) = of_workers([(1, broken), (2, [])])
    assert (is_condition_shown.state, is_condition_shown.subject) == (ServingState.NEEDS_ATTENTION, "worker 1")
    assert is_condition_shown.detail == "worker 1: no broker responds"
    (all_of_them,) = of_workers([(1, broken), (2, broken)])
    assert (all_of_them.state, all_of_them.subject) == (ServingState.NOT_SERVING, "")


def test_the_same_condition_of_two_workers_is_shown_once() -> None:
    login = [active_condition(Condition.PROXY_LOGIN_REJECTED, "wrong password")]

    assert len(of_workers([(1, login), (2, login)])) == 1


def test_each_condition_has_a_description() -> None:
    assert TYPES.keys() == set(Condition)
    assert all(kind.meaning and kind.begins and kind.ends and kind.advice for kind in TYPES.values())


@pytest.mark.parametrize("condition", [Condition.UPSTREAM_UNREACHABLE, Condition.BROKER_UNREACHABLE])
def test_advice_distinguishes_a_hanging_broker_from_a_stopped_one(condition: Condition) -> None:
    assert "Start the broker" in condition.type.advice
    assert "`no response within`, a broker may run and hang: look at its process" in condition.type.advice


def test_later_success_of_another_worker_ends_a_failure_condition() -> None:
    kind = Condition.QUARANTINE_FAILING
    failing = replace(active_condition(kind, "unknown topic"), subject="topic dead", failed_at=100.0)

    def is_condition_shown(succeeded_at: float, now: float) -> bool:
        return bool(not_refuted([failing], [{(kind, "topic dead"): succeeded_at}], now))

    assert not is_condition_shown(101, 107)
    assert is_condition_shown(101, 105), "another partition may fail until the next retry"
    assert is_condition_shown(99, 107), "the success is older"
    assert not_refuted([failing], [{(kind, "topic other"): 101}, {}], 107) == [failing]
    assert not_refuted([active_condition(Condition.BROKER_PORT_CLOSED, "taken")], [{}], 107) != []


def test_condition_of_two_workers_lists_waiting_clients_of_both() -> None:
    def condition_with_waiting_client(name: str, topic: str) -> ActiveCondition:
        who = WaitingNames(frozenset({name}), frozenset({topic}))
        return replace(active_condition(Condition.REGISTRY_UNREACHABLE, "refused"), subject="main", waiting=who)

    (is_condition_shown,) = of_workers(
        [
            (1, [condition_with_waiting_client("billing", "orders")]),
            (2, [condition_with_waiting_client("shop", "refunds")]),
        ]
    )
    assert is_condition_shown.text == "refused; 2 clients wait (billing, shop), topics orders, refunds"
