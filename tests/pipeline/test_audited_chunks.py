"""A chunk's estimate of its batches' append times equals the whole partition's estimate."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.pipeline.jobs.audit.partition_validator import depends_on_earlier_batches
from sluicegate.pipeline.jobs.audit.partitions import _part, append_time_lookup
from sluicegate.pipeline.jobs.profile.append_times import AppendTimes, append_times_from
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source.chunks import Chunk
from sluicegate.validation.policy import TimeFix, TopicPolicy
from sluicegate.validation.rules.built_in import MonotonicTime
from sluicegate.validation.rules.rule import NamedRule
from sluicegate.validation.rules.rule_set import RuleSet

WHOLE = OffsetRange(TopicPartition("t", 0), 10, 100)


def batch_ending_at(last_offset: int) -> StoredBatch:
    """Return a batch without a header, which means that the broker has set no time."""
    return StoredBatch(memoryview(b""), 0, 0, last_offset, last_offset, None)


@given(
    st.lists(st.tuples(st.integers(10, 99), st.integers(0, 10**6)), min_size=1, max_size=30),
    st.integers(11, 99),
)
def test_chunk_and_whole_partition_give_batches_equal_append_times(points: list[tuple[int, int]], at: int) -> None:
    offsets, times = (np.array(sorted(column), np.int64) for column in zip(*points, strict=True))
    whole = AppendTimes(offsets, times, offsets, times + 5, offsets, times + 3, 10**7, 1)
    chunks = [Chunk(WHOLE, 10, at), Chunk(WHOLE, at, 100)]

    for chunk in chunks:
        part = append_times_from(json.loads(json.dumps(_part(whole, chunk).as_json())))
        batches = [batch_ending_at(offset) for offset in range(chunk.start, chunk.end)]
        if chunk.end == WHOLE.end:
            batches.append(batch_ending_at(WHOLE.end + 7))  # a batch that extends beyond the end of the read range
        assert list(map(append_time_lookup(part), batches)) == list(map(append_time_lookup(whole), batches))


def test_only_previous_time_fix_and_time_order_rule_depend_on_earlier_batches() -> None:
    in_order = RuleSet([NamedRule("in order", MonotonicTime())])

    assert depends_on_earlier_batches(TopicPolicy(fix=TimeFix.PREVIOUS))
    assert depends_on_earlier_batches(TopicPolicy(rules=in_order))
    assert not depends_on_earlier_batches(TopicPolicy(fix=TimeFix.NOW, after_max_ms=5))
