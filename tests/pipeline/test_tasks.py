"""Work is distributed to tasks of similar size."""

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.pipeline.source.tasks import distribute_items


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(1, 12))
def test_each_item_is_in_one_task_and_tasks_have_similar_sizes(sizes: list[int], at_most: int) -> None:
    groups = distribute_items(sizes, lambda size: size, at_most)

    assert sorted(size for group in groups for size in group) == sorted(sizes)
    assert len(groups) == min(len(sizes), at_most)
    if groups:
        # Each task had the least work when it got its last item.
        least = min(sum(group) + len(group) for group in groups)
        assert all(sum(group) + len(group) - group[-1] - 1 <= least for group in groups)
