"""Steps of distance: none is left out, none overlaps, and each is about a fifth of what it stands for."""

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.validation.distances import STEPS, beginning_of, step_of

LONGEST = 2**63 - 1


@given(st.integers(0, LONGEST))
def test_every_distance_lies_in_its_step(away: int) -> None:
    step = step_of(away)

    assert 0 <= step < STEPS
    assert beginning_of(step) <= away < beginning_of(step + 1)


def test_a_step_is_at_most_a_quarter_of_where_it_begins() -> None:
    for step in range(4, step_of(LONGEST)):
        assert beginning_of(step) < beginning_of(step + 1) <= beginning_of(step) * 1.25
