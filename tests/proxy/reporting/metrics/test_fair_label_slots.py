"""Slots are bounded, each has one name, and every holder keeps an equal share."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.proxy.reporting.metrics.fair_label_slots import FairLabelSlots

_MOST = 6


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30)), max_size=200))
def test_label_slots_are_bounded_and_shared_fairly(named: list[tuple[str, int]]) -> None:
    replaced: list[str] = []
    places: FairLabelSlots[str] = FairLabelSlots(_MOST, replaced.append)
    wanted: dict[str, set[str]] = {}
    for holder, number in named:
        name = f"{holder}{number}"
        had_one, before = name in places, len(places) + len(replaced)
        places.take_any(name, holder)
        assert len(places) + len(replaced) == before + (not had_one)
        wanted.setdefault(holder, set()).add(name)

    kept = Counter(holder for holder, names in wanted.items() for name in names if name in places)
    assert len(places) == sum(kept.values()) == min(_MOST, sum(map(len, wanted.values())))
    for holder, names in wanted.items():
        assert kept[holder] >= min(len(names), _MOST // len(wanted))


def test_replaces_oldest_least_valuable_name_of_largest_holder() -> None:
    worth = {"old and dear": 9, "old": 1, "newer": 2}
    replaced: list[str] = []
    places: FairLabelSlots[str] = FairLabelSlots(3, replaced.append, lambda name: worth.get(name, 9))
    for name in worth:
        places.take(name, "many")

    assert not places.take("one more", "many")
    assert places.take("first", "few")
    places.take_any("one more", "many")

    assert replaced == ["old", "newer"]
    assert places.holders() == {"old and dear": "many", "first": "few", "one more": "many"}
