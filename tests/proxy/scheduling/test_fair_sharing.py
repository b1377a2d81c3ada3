"""The fair queue orders work fairly, and no client occupies more fair slots than it leaves free."""

from collections import Counter
from dataclasses import dataclass

from sluicegate.proxy.scheduling.fair_sharing import Account, FairQueue, FairSlots


@dataclass(frozen=True, eq=False)
class QueuedWork:
    name: str
    account: Account


def turn_order(turns: FairQueue[QueuedWork], now: float) -> list[str]:
    order = []
    while (work := turns.pop(now)) is not None:
        order.append(work.name)
    return order


def test_least_served_account_runs_first_then_longest_waiting_work() -> None:
    turns: FairQueue[QueuedWork] = FairQueue()
    greedy, modest = Account(), Account()
    greedy.add(3.0, now=100)
    modest.add(0.1, now=100)
    for work in (QueuedWork("a", greedy), QueuedWork("b", modest), QueuedWork("c", modest)):
        turns.add(work)

    assert turn_order(turns, now=100) == ["b", "c", "a"]


def test_new_accounts_run_after_lightly_served_ones_and_newest_first() -> None:
    turns: FairQueue[QueuedWork] = FairQueue()
    greedy, modest, early, late = Account(), Account(), Account(), Account()
    greedy.add(3.0, now=100)
    modest.add(0.1, now=100)
    for work in (
        QueuedWork("greedy", greedy),
        QueuedWork("early", early),
        QueuedWork("late, first", late),
        QueuedWork("late, second", late),
        QueuedWork("modest", modest),
    ):
        turns.add(work)

    assert turn_order(turns, now=100) == ["modest", "late, first", "late, second", "early", "greedy"]


def test_served_time_of_an_account_decays() -> None:
    long_ago, lately = Account(), Account()
    long_ago.add(1.0, now=0)
    lately.add(0.1, now=60)

    assert long_ago.served(now=60) < lately.served(now=60)


def test_work_of_disconnected_clients_runs_last() -> None:
    turns: FairQueue[QueuedWork] = FairQueue()
    left, here = Account(), Account()
    left.has_left = True
    here.add(10.0, now=5)
    turns.add(QueuedWork("left", left))
    turns.add(QueuedWork("here", here))

    first = turns.pop(now=5)

    assert first is not None
    assert first.name == "here"


def test_removed_work_is_never_popped() -> None:
    turns: FairQueue[QueuedWork] = FairQueue()
    work = QueuedWork("gone", Account())
    turns.add(work)

    assert turns.remove(work)
    assert not turns.remove(work)
    assert turns.pop(now=0) is None


def slots_by_client(places: FairSlots, *comers: str) -> Counter[str]:
    """Return how many slots each client gets if all of them take turns."""
    had: Counter[str] = Counter()
    while takers := [who for who in comers if places.has_slot_for(who)]:
        places.take(takers[0])
        had[takers[0]] += 1
    return had


def test_one_client_gets_at_most_half_of_the_free_slots() -> None:
    places = FairSlots(16)

    assert slots_by_client(places, "a") == {"a": 8}
    assert slots_by_client(places, "b", "a") == {"b": 4}
    assert slots_by_client(places, "c", "b", "a") == {"c": 2}
    assert [places.taken_by(who) for who in "abcd"] == [8, 4, 2, 0]
    assert places.has_slot_for("d")


def test_client_gets_a_slot_only_after_another_releases_one() -> None:
    places = FairSlots(3)
    for who in "abc":
        places.take(who)

    assert not any(places.has_slot_for(who) for who in "abcd")
    places.release("b")
    assert [who for who in "abcd" if places.has_slot_for(who)] == ["b", "d"]
