"""A session's stage only advances, for all orders of events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.proxy.session.lifecycle import RULES, Lifecycle, LifecycleEvent, Stage

_CONNECTED, _DRAIN, _BUSY, _REQUESTS_ENDED, _BOTH_CLOSED = LifecycleEvent


def test_every_stage_has_transitions_to_later_stages_only() -> None:
    assert set(RULES) == set(Stage)
    assert all(stage < after for stage, rules in RULES.items() for after in rules.values())


@given(st.lists(st.sampled_from(LifecycleEvent)))
def test_stage_only_advances_for_any_order_of_events(events: list[LifecycleEvent]) -> None:
    life = Lifecycle()
    for event in events:
        before = life.stage
        changed = life.apply(event)
        assert life.stage > before if changed else life.stage is before


@pytest.mark.parametrize("stage", set(Stage) - {Stage.ENDED})
def test_closing_both_sides_ends_every_stage(stage: Stage) -> None:
    assert RULES[stage][_BOTH_CLOSED] is Stage.ENDED


@pytest.mark.parametrize(
    ("events", "stage"),
    [
        ([_CONNECTED], Stage.OPEN),
        ([_DRAIN, _CONNECTED], Stage.DRAINING),
        (
            [_CONNECTED, _BUSY, _DRAIN],
            Stage.HALF_CLOSED,
        ),
        (
            [_CONNECTED, _BUSY, _REQUESTS_ENDED],
            Stage.CLOSING,
        ),
        (
            [_CONNECTED, _REQUESTS_ENDED, _BUSY],
            Stage.CLOSING,
        ),
        ([_BOTH_CLOSED, _CONNECTED], Stage.ENDED),
    ],
)
def test_sequences_of_events_reach_the_expected_stage(events: list[LifecycleEvent], stage: Stage) -> None:
    life = Lifecycle()
    for event in events:
        life.apply(event)

    assert life.stage is stage
