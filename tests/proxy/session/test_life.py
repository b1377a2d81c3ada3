"""A session's stage only rises, whatever happens in whatever order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.proxy.session.life import RULES, Happening, Life, Stage


def test_every_stage_has_its_rules_and_none_leads_back() -> None:
    assert set(RULES) == set(Stage)
    assert all(stage < after for stage, rules in RULES.items() for after in rules.values())


@given(st.lists(st.sampled_from(Happening)))
def test_no_order_of_happenings_makes_it_fall(happenings: list[Happening]) -> None:
    life = Life()
    for happening in happenings:
        before = life.stage
        changed = life.comes_to(happening)
        assert life.stage > before if changed else life.stage is before


@pytest.mark.parametrize("stage", set(Stage) - {Stage.ENDED})
def test_from_everywhere_it_ends(stage: Stage) -> None:
    assert RULES[stage][Happening.BOTH_GONE] is Stage.ENDED


@pytest.mark.parametrize(
    ("happenings", "stage"),
    [
        ([Happening.BROKER_CAME], Stage.OPEN),
        ([Happening.IS_TO_END, Happening.BROKER_CAME], Stage.DRAINING),
        ([Happening.BROKER_CAME, Happening.LAST_IS_BUSY, Happening.IS_TO_END], Stage.LEAVING),
        ([Happening.BROKER_CAME, Happening.LAST_IS_BUSY, Happening.GOODBYE_SAID], Stage.GOODBYE),
        ([Happening.BROKER_CAME, Happening.GOODBYE_SAID, Happening.LAST_IS_BUSY], Stage.GOODBYE),
        ([Happening.BOTH_GONE, Happening.BROKER_CAME], Stage.ENDED),
    ],
)
def test_where_lives_lead(happenings: list[Happening], stage: Stage) -> None:
    life = Life()
    for happening in happenings:
        life.comes_to(happening)

    assert life.stage is stage
