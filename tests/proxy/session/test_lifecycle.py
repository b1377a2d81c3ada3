"""A session's stage only rises, whatever happens in whatever order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.proxy.session.lifecycle import RULES, Lifecycle, LifecycleEvent, Stage


def test_every_stage_has_its_rules_and_none_leads_back() -> None:
    assert set(RULES) == set(Stage)
    assert all(stage < after for stage, rules in RULES.items() for after in rules.values())


@given(st.lists(st.sampled_from(LifecycleEvent)))
def test_no_order_of_happenings_makes_it_fall(happenings: list[LifecycleEvent]) -> None:
    life = Lifecycle()
    for happening in happenings:
        before = life.stage
        changed = life.comes_to(happening)
        assert life.stage > before if changed else life.stage is before


@pytest.mark.parametrize("stage", set(Stage) - {Stage.ENDED})
def test_from_everywhere_it_ends(stage: Stage) -> None:
    assert RULES[stage][LifecycleEvent.BOTH_GONE] is Stage.ENDED


@pytest.mark.parametrize(
    ("happenings", "stage"),
    [
        ([LifecycleEvent.BROKER_CAME], Stage.OPEN),
        ([LifecycleEvent.IS_TO_END, LifecycleEvent.BROKER_CAME], Stage.DRAINING),
        ([LifecycleEvent.BROKER_CAME, LifecycleEvent.LAST_IS_BUSY, LifecycleEvent.IS_TO_END], Stage.LEAVING),
        ([LifecycleEvent.BROKER_CAME, LifecycleEvent.LAST_IS_BUSY, LifecycleEvent.GOODBYE_SAID], Stage.GOODBYE),
        ([LifecycleEvent.BROKER_CAME, LifecycleEvent.GOODBYE_SAID, LifecycleEvent.LAST_IS_BUSY], Stage.GOODBYE),
        ([LifecycleEvent.BOTH_GONE, LifecycleEvent.BROKER_CAME], Stage.ENDED),
    ],
)
def test_where_lives_lead(happenings: list[LifecycleEvent], stage: Stage) -> None:
    life = Lifecycle()
    for happening in happenings:
        life.comes_to(happening)

    assert life.stage is stage
