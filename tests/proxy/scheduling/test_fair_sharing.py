"""The order of work in the fair queue. Fair slots: no client has more slots than it leaves free."""

from collections import Counter
from dataclasses import dataclass

import pytest

from sluicegate.proxy.scheduling.fair_sharing import Account, FairQueue, FairSlots


@dataclass(frozen=True, eq=False)
class Work:
    name: str
    account: Account


def test_those_for_whom_least_was_done_go_first_and_then_who_waits_longest() -> None:
    turns: FairQueue[Work] = FairQueue()
    greedy, modest, new = Account(), Account(), Account()
    greedy.add(3.0, now=100)
    modest.add(0.1, now=100)
    for work in (Work("a", greedy), Work("b", modest), Work("c", new), Work("d", new)):
        turns.add(work)

    order = []
    while (work := turns.pop(now=100)) is not None:
        order.append(work.name)

    assert order == ["c", "d", "b", "a"]


def test_what_was_done_long_ago_counts_little() -> None:
    long_ago, lately = Account(), Account()
    long_ago.add(1.0, now=0)
    lately.add(0.1, now=60)

    assert long_ago.served(now=60) < lately.served(now=60)


def test_work_for_clients_that_have_left_comes_last() -> None:
    turns: FairQueue[Work] = FairQueue()
    left, here = Account(), Account()
    left.has_left = True
    here.add(10.0, now=5)
    turns.add(Work("left", left))
    turns.add(Work("here", here))

    first = turns.pop(now=5)

    assert first is not None
    assert first.name == "here"


@pytest.mark.parametrize(("done_for_waiting", "goes_before"), [(0.0, True), (5.0, False)])
def test_only_who_was_served_less_goes_before_work_that_has_begun(done_for_waiting: float, goes_before: bool) -> None:
    turns: FairQueue[Work] = FairQueue()
    begun, waiting = Account(), Account()
    begun.add(1.0, now=5)
    waiting.add(done_for_waiting, now=5)
    turns.add(Work("waiting", waiting))

    assert (turns.pop_before(begun, now=5) is not None) is goes_before


def test_what_is_taken_out_is_not_done() -> None:
    turns: FairQueue[Work] = FairQueue()
    work = Work("gone", Account())
    turns.add(work)

    assert turns.remove(work)
    assert not turns.remove(work)
    assert turns.pop(now=0) is None


def filled(places: FairSlots, *comers: str) -> Counter[str]:
    """Return how many slots each client gets if all of them take turns."""
    had: Counter[str] = Counter()
    while takers := [who for who in comers if places.has_slot_for(who)]:
        places.take(takers[0])
        had[takers[0]] += 1
    return had


def test_one_alone_has_half_of_them_and_who_comes_later_finds_some() -> None:
    places = FairSlots(16)

    assert filled(places, "a") == {"a": 8}
    assert filled(places, "b", "a") == {"b": 4}
    assert filled(places, "c", "b", "a") == {"c": 2}
    assert [places.taken_by(who) for who in "abcd"] == [8, 4, 2, 0]
    assert places.has_slot_for("d")


def test_as_many_as_there_are_places_have_one_each_and_then_there_is_none() -> None:
    places = FairSlots(3)
    for who in "abc":
        places.take(who)

    assert not any(places.has_slot_for(who) for who in "abcd")
    places.give_back("b")
    assert [who for who in "abcd" if places.has_slot_for(who)] == ["b", "d"]
