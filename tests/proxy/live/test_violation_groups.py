"""Violation groups are bounded, and invented client names do not displace long-known clients."""

from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.live.violation_groups import MAX_GROUPS
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.validation.verdict import Reason
from tests.proxy.live.events import NOW, rejected_event


def new_view() -> LiveView:
    return LiveView(Counters(), None, NOW)


def test_equal_violations_are_one_group_with_times_and_newest_example() -> None:
    view = new_view()
    for second in range(3):
        view.write(rejected_event(now_ms=NOW + 1000 * second))
    view.write(rejected_event(reason=Reason.NULL_KEY))

    first, second_one = view.violation_groups.state(10)

    assert (first["client_id"], first["topic"], first["reason"]) == ("billing", "payments", "timestamp_in_future")
    assert (first["batches"], first["bad_records"]) == (3, 15)
    assert (first["first_ms"], first["last_ms"]) == (NOW, NOW + 2000)
    assert first["example"]["time"] == "2027-01-15T08:00:02.000+00:00"
    assert second_one["reason"] == "null_key"


def test_a_flood_of_client_names_displaces_no_larger_group() -> None:
    view = new_view()
    for number in range(20 * MAX_GROUPS):
        view.write(rejected_event(f"invented-{number}"))
        if number % 50 == 0:
            view.write(rejected_event("the-real-one"))

    state = view.violation_groups.state(10 * MAX_GROUPS)

    assert len(state) == MAX_GROUPS
    assert (state[0]["client_id"], state[0]["batches"]) == ("the-real-one", 20 * MAX_GROUPS // 50)
    assert sum(one["batches"] for one in state) + view.violation_groups.other == 20 * MAX_GROUPS + 20 * MAX_GROUPS // 50


def test_a_flood_of_topics_from_one_address_displaces_no_others() -> None:
    view = new_view()
    for number in range(20 * MAX_GROUPS):
        if number % 1000 == 0:
            for topic in ("payments", "orders"):
                view.write(rejected_event("shop", topic, peer="192.0.2.9:1"))
        view.write(rejected_event("flood", f"topic-{number}"))

    state = {(one["client_id"], one["topic"]): one["batches"] for one in view.violation_groups.state(MAX_GROUPS)}

    assert state["shop", "payments"] == state["shop", "orders"] == 20 * MAX_GROUPS // 1000


def test_a_small_query_returns_the_largest_groups() -> None:
    view = new_view()
    for name, times in (("a", 1), ("b", 3), ("c", 2)):
        for _ in range(times):
            view.write(rejected_event(name))

    assert [one["client_id"] for one in view.violation_groups.state(2)] == ["b", "c"]


def test_equal_violations_are_listed_once_and_all_counted() -> None:
    view = new_view()
    for millisecond in range(1000):
        view.write(rejected_event(now_ms=NOW + millisecond))

    (group,) = view.violation_groups.state(10)

    assert group["batches"] == 1000
    assert group["last_ms"] == NOW + 999
    assert len(view.violations) == 10
    assert group["example"]["time"] == "2027-01-15T08:00:00.900+00:00"
