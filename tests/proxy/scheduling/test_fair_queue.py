"""The order of work in the fair queue."""

from dataclasses import dataclass

import pytest

from sluicegate.proxy.scheduling.fair_sharing import Account, FairQueue


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
