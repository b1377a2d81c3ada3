"""A partition that several tasks read gives exactly the same result as one that a single task reads."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.pipeline.jobs.profile import timestamp_counts
from sluicegate.pipeline.jobs.profile.cells import KEYS, cells_of
from sluicegate.pipeline.jobs.profile.invalid_timestamps import partition_clock
from sluicegate.pipeline.jobs.profile.reading import SCHEMA, Reading, count_timestamps
from sluicegate.pipeline.kafka import fetching
from sluicegate.pipeline.kafka.cluster import KafkaCluster, OffsetRange, TopicPartition
from sluicegate.pipeline.source.chunks import BLOCK_OFFSETS, Chunk, cut_ranges, join_ranges
from sluicegate.pipeline.source.options import SourceOptions, source_options
from sluicegate.protocol.fetch_response import FetchedPartition
from tests.pipeline.logs import NOW, WRITTEN, ScriptedLog, WrittenBatch, log_of

pytestmark = pytest.mark.long

OF = TopicPartition("t", 3)
HOUR = 3_600_000
NOBODY = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}  # receives no requests


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    """Use small blocks, so that a log with few records consists of several blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timestamp_counts, "BLOCK_OFFSETS", 16)
        yield


def fetch_from(log: ScriptedLog, batches: int) -> Callable[..., FetchedPartition]:
    def fetch_from_log(
        _cluster: KafkaCluster, _of: TopicPartition, offset: int, _size: int, _committed: bool
    ) -> FetchedPartition:
        return log.fetched(offset, batches)

    return fetch_from_log


def read_chunks(options: SourceOptions, chunks: Sequence[Chunk], large_bytes: int) -> Reading:
    tables = [count_timestamps(options, chunk, NOW, None, large_bytes) for chunk in chunks]
    return Reading.from_table(pa.concat_tables(tables))


@given(
    st.lists(WRITTEN, min_size=1, max_size=12),
    st.lists(st.integers(0, 60), max_size=6),
    st.tuples(st.integers(0, 20), st.integers(0, 20)),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([-1, 100, 10**6]),
)
def test_the_counts_of_chunks_add_up_to_those_of_the_whole_log(
    entries: list[WrittenBatch], cuts: list[int], ends: tuple[int, int], at_once: int, committed: bool, most_exact: int
) -> None:
    log = log_of(entries)
    start = min(ends[0], log.end - 1)
    whole = OffsetRange(OF, start, max(start + 1, log.end - ends[1]))
    places = [whole.start, *sorted({c * 16 for c in cuts if whole.start < c * 16 < whole.end}), whole.end]
    chunks = [Chunk(whole, first, end) for first, end in pairwise(places)]
    isolation = "read_committed" if committed else "read_uncommitted"
    options = source_options(NOBODY | {"isolation.level": isolation})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetching, "_fetch", fetch_from(log, at_once))
        patch.setattr(timestamp_counts, "_MOST_EXACT_ROWS", most_exact)
        as_one = read_chunks(options, [Chunk(whole, whole.start, whole.end)], 12)
        in_chunks = read_chunks(options, chunks, 12)

    assert in_chunks.rows.equals(as_one.rows)
    assert (in_chunks.missing, in_chunks.largest) == (as_one.missing, as_one.largest)
    in_order = [(name, "ascending") for name in KEYS]
    cells = [cells_of(whole, each, NOW, HOUR, HOUR).sort_by(in_order) for each in (as_one, in_chunks)]
    assert cells[1].equals(cells[0])
    clocks = [partition_clock(each.rows, NOW) for each in (as_one, in_chunks)]
    assert (clocks[0] is None) == (clocks[1] is None)
    if clocks[0] is not None and clocks[1] is not None:
        assert clocks[1].offsets.tolist() == clocks[0].offsets.tolist()
        assert clocks[1].times.tolist() == clocks[0].times.tolist()


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 10**8)), min_size=1, max_size=20),
    st.integers(1, 64),
)
def test_chunks_begin_at_blocks_and_cover_every_offset(ranges: list[tuple[int, int]], tasks: int) -> None:
    wanted = [OffsetRange(TopicPartition("t", i), start, start + size) for i, (start, size) in enumerate(ranges)]

    found = cut_ranges(wanted, tasks)

    assert [its[0].whole for its in found] == wanted
    for whole, its in zip(wanted, found, strict=True):
        assert [whole.start, *(chunk.end for chunk in its)] == [*(chunk.start for chunk in its), whole.end]
        assert all(chunk.size > 0 and chunk.whole == whole for chunk in its)
        assert all(chunk.start % BLOCK_OFFSETS == 0 for chunk in its[1:])
    assert sum(map(len, found)) <= 2 * tasks + len(wanted)


def test_only_large_partitions_are_split_into_chunks() -> None:
    large = OffsetRange(TopicPartition("t", 0), 5, 20_000_005)
    small = [OffsetRange(TopicPartition("t", i), 0, 100_000) for i in range(1, 4)]

    found = cut_ranges([large, *small], 8)

    assert [len(its) for its in found] == [8, 1, 1, 1]
    sizes = [chunk.size for chunk in found[0]]
    assert max(sizes) - min(sizes) <= 2 * BLOCK_OFFSETS


def test_deleted_ranges_of_chunks_are_joined() -> None:
    missing = join_ranges([(0, 50), (50, 100), (100, 120), (300, 310)])

    assert missing == ((0, 120), (300, 310))


def test_timestamp_reading_survives_conversion_to_table_and_back() -> None:
    reading = Reading(timestamp_counts.SCHEMA.empty_table(), ((5, 9), (12, 13)), 77)

    found = Reading.from_table(reading.as_table())

    assert reading.as_table().schema == SCHEMA
    assert (found.rows.num_rows, found.missing, found.largest) == (0, reading.missing, 77)
