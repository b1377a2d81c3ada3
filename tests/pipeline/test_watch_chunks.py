"""A watch's batch reads the new records and knows a lower and an upper bound of their append times."""

from dataclasses import replace

import numpy as np
import pytest

from sluicegate.pipeline.jobs.profile.append_times import AppendTimes
from sluicegate.pipeline.jobs.watch.reading import PartitionStates, TopicChanged, WatchChunk, WatchedOffset
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
BEGUN, ENDED = 1_000_000, 1_000_200
HOUR = 3_600_000


def partition_states(
    *, a: int = 100, b: int = 50, starts: int = 0, settled: frozenset[TopicPartition] = frozenset({A, B})
) -> PartitionStates:
    return PartitionStates(BEGUN, ENDED, {A: starts, B: starts}, {A: a, B: b}, settled, {})


def test_a_watch_reads_all_records_first_and_then_new_ones() -> None:
    first = partition_states()

    assert first.chunks({}, 1000) == [
        WatchChunk(OffsetRange(A, 0, 100), 0, ENDED),
        WatchChunk(OffsetRange(B, 0, 50), 0, ENDED),
    ]
    places = {chunk.wanted.of: first.place_after(chunk) for chunk in first.chunks({}, 1000)}
    assert places == {A: WatchedOffset(100, BEGUN), B: WatchedOffset(50, BEGUN)}
    assert partition_states(a=130).chunks(places, 1000) == [WatchChunk(OffsetRange(A, 100, 130), BEGUN, ENDED)]
    assert partition_states().chunks(places, 1000) == []


def test_unread_records_keep_their_earlier_append_time_bound() -> None:
    some = partition_states(settled=frozenset({A}))

    cut = some.chunks({A: WatchedOffset(0, 7), B: WatchedOffset(0, 8)}, 75)
    whole = some.chunks({A: WatchedOffset(0, 7), B: WatchedOffset(0, 8)}, 1000)

    assert [(chunk.wanted.of, chunk.wanted.end) for chunk in cut] == [(A, 50), (B, 25)]
    assert [some.place_after(chunk) for chunk in cut] == [WatchedOffset(50, 7), WatchedOffset(25, 8)]
    assert [some.place_after(chunk) for chunk in whole] == [WatchedOffset(100, BEGUN), WatchedOffset(50, 8)]


def test_ranges_with_deleted_offsets_are_still_requested() -> None:
    assert partition_states(starts=90, b=95).chunks({A: WatchedOffset(80, 7), B: WatchedOffset(95, 7)}, 1000)[
        0
    ].wanted == OffsetRange(A, 80, 100)


def test_rejects_topic_that_ends_before_the_offset_already_read() -> None:
    with pytest.raises(TopicChanged, match="t-0 ends at offset 100, but was read up to 101: its broker has lost"):
        partition_states().chunks({A: WatchedOffset(101, 7)}, 1000)


def test_append_times_are_limited_to_times_between_watch_batches() -> None:
    chunk, places = WatchChunk(OffsetRange(A, 0, 4), BEGUN, ENDED), np.arange(4)
    times = np.array([5, BEGUN + 3, BEGUN + 90, ENDED + 60_000])
    shown = replace(AppendTimes.between(0, ENDED + HOUR), offsets=places, times=times)

    found = chunk.limited(shown)

    assert found.earliest(places).tolist() == [BEGUN, BEGUN + 3, BEGUN + 90, ENDED]
    assert found.latest(places).tolist() == [ENDED] * 4
    assert chunk.limited(AppendTimes.between(0, ENDED)).earliest(places).tolist() == [BEGUN] * 4
