"""Slots are bounded, each has one name, and every owner keeps an equal share."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.proxy.reporting.metrics.fair_label_slots import FairLabelSlots

_MOST = 6


def _named(places: FairLabelSlots[str], name: str, owner: str) -> None:
    if name in places:
        places.use(name, owner)
        return
    if places.is_full:
        replaced = places.of_others(owner) or places.of_its_own(owner)
        assert replaced is not None
        places.drop(replaced)
    places.add(name, owner)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30)), max_size=200))
def test_places_are_bounded_and_shared_out(named: list[tuple[str, int]]) -> None:
    places: FairLabelSlots[str] = FairLabelSlots(_MOST)
    wanted: dict[str, set[str]] = {}
    for owner, number in named:
        name = f"{owner}{number}"
        _named(places, name, owner)
        wanted.setdefault(owner, set()).add(name)

    kept = Counter(owner for owner, names in wanted.items() for name in names if name in places)
    assert len(places) == sum(kept.values()) == min(_MOST, sum(map(len, wanted.values())))
    for owner, names in wanted.items():
        assert kept[owner] >= min(len(names), _MOST // len(wanted))


def test_the_least_worthy_old_name_of_the_largest_owner_is_replaced() -> None:
    worth = {"old and dear": 9, "old": 1, "newer": 2}
    places: FairLabelSlots[str] = FairLabelSlots(3, lambda name: worth[name])
    for name in worth:
        places.add(name, "many")

    assert places.of_others("few") == "old"
    assert places.of_others("many") is None
    assert places.of_its_own("many") == "old"
    assert places.of_its_own("few") is None
