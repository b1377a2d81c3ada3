"""Fair slots: no client has more slots than it leaves free."""

from collections import Counter

from sluicegate.proxy.scheduling.fair_sharing import FairSlots


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
