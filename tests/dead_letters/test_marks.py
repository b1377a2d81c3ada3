"""Marks are read as they were written, and a set of ranges is a set of offsets."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.dead_letters.marks import Mark, Marks, MarkState, mark_of, ranges_of_offsets

OFFSETS = st.sets(st.integers(0, 60))


def mark(offsets: set[int], state: MarkState = MarkState.REDRIVEN, plan: str = "p", topic_id: str = "id") -> Mark:
    return Mark("dead", topic_id, 0, ranges_of_offsets(sorted(offsets)), state, plan, "me", 1)


def test_a_mark_is_read_as_it_is_written() -> None:
    given_up = Mark("dead", "id", 3, ((1, 2), (5, 9)), MarkState.GIVEN_UP, "p", "me", 1, "invalid_record")

    assert mark_of(given_up.value()) == given_up


def test_malformed_values_are_not_marks() -> None:
    assert [mark_of(value) for value in (None, b"", b"1", b"{}", b'{"ranges": [[1]]}', b"\xff", b"[" * 9)] == [None] * 7


@given(st.lists(OFFSETS.filter(bool), max_size=8))
def test_the_state_of_each_offset_is_that_of_its_marks(written: list[set[int]]) -> None:
    marks = Marks("id", [mark(offsets) for offsets in written])

    marked = set().union(*written)
    assert {offset for offset in range(-1, 70) if marks.state_of(0, offset) is MarkState.REDRIVEN} == marked
    assert all(marks.state_of(1, offset) is None for offset in range(70))


@given(OFFSETS)
def test_ranges_cover_exactly_the_given_offsets(offsets: set[int]) -> None:
    ranges = ranges_of_offsets(sorted(offsets))

    assert {offset for first, end in ranges for offset in range(first, end)} == offsets
    assert all(before[1] < after[0] for before, after in pairwise(ranges))


def test_marks_of_a_deleted_topic_and_of_the_plan_itself_do_not_count() -> None:
    marks = Marks("id", [mark({1}, topic_id="old"), mark({2}, plan="mine"), mark({3}, MarkState.GIVEN_UP)])

    assert [marks.state_of(0, offset) for offset in (1, 2, 3)] == [None, MarkState.REDRIVEN, MarkState.GIVEN_UP]
    assert [marks.state_of(0, offset, "mine") for offset in (1, 2, 3)] == [None, None, MarkState.GIVEN_UP]


def test_marks_that_differ_in_any_field_have_different_keys() -> None:
    marks = [mark({1}), mark({1, 2}), mark({1}, MarkState.GIVEN_UP), mark({1}, plan="other"), mark({1, 3, 2})]

    assert len({each.key() for each in marks}) == 5
