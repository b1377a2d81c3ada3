"""Small ranges share tasks."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.source.task_ranges import ranges_of_tasks, split_ranges


def ranges_of_sizes(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", number), 10, 10 + size) for number, size in enumerate(sizes)]


def test_large_partitions_are_cut_into_more_ranges() -> None:
    small, large = ranges_of_sizes(100, 900)

    chunks = split_ranges([small, large], 10)

    assert chunks[0] == small
    assert [(p.start, p.end) for p in chunks[1:]] == [(10 + 100 * i, 110 + 100 * i) for i in range(9)]
    assert split_ranges([small, large], None) == [small, large]
    assert [(p.start, p.end) for p in split_ranges([small, large], None, 300)[1:]] == [
        (10, 310),
        (310, 610),
        (610, 910),
    ]


@pytest.mark.parametrize(
    ("partitions", "records", "at_least", "tasks"),
    [
        (1000, 280, None, 33),
        (1000, 280, 100, 100),
        (1000, 280, 1000, 1000),
        (1000, 20_000, None, 334),  # three pieces have fewer than 65,536 offsets
        (1000, 65_536, None, 1000),
        (32, 280, None, 32),
        (3, 10, None, 3),
    ],
)
def test_many_small_partitions_share_tasks(partitions: int, records: int, at_least: int | None, tasks: int) -> None:
    found = ranges_of_tasks(ranges_of_sizes(*[records] * partitions), at_least)

    assert len(found) == tasks


@given(st.lists(st.integers(1, 200_000), max_size=300), st.none() | st.integers(1, 400))
def test_every_offset_is_in_one_task_and_partitions_stay_in_order(sizes: list[int], at_least: int | None) -> None:
    whole = ranges_of_sizes(*sizes)

    tasks = ranges_of_tasks(whole, at_least)

    assert list(chain(*tasks)) == list(split_ranges(whole, at_least))
    assert all(sum(each.size for each in its) <= 65_536 for its in tasks if len(its) > 1)
    assert len(tasks) >= min(len(split_ranges(whole, at_least)), at_least or 32)
