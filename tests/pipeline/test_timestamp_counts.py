"""Timestamp counts agree with the records that they count."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.pipeline.jobs.profile import timestamp_counts
from sluicegate.pipeline.jobs.profile.kinds import TimestampKind
from sluicegate.pipeline.jobs.profile.timestamp_counts import MINUTE_MS, TimestampCounts
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source.decoding import BatchDecoder
from sluicegate.protocol.records.record_batch import RecordBatch
from sluicegate.validation.units import unit_of
from tests.wire.batches import LZ4, NONE, Rec, batch

NOW = 1_764_000_000_000
OF = TopicPartition("t", 3)
TIMES = (
    st.integers(NOW - 600_000, NOW)
    | st.integers(NOW - 10**10, NOW + 10**10)
    | st.sampled_from([0, -1, NOW // 1000, NOW * 1000, NOW * 10**6, 2**63 - 1, -(2**63)])
)
RECORDS = st.builds(Rec, TIMES, st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=9))
BATCHES = st.lists(st.tuples(st.lists(RECORDS, min_size=1, max_size=40), st.sampled_from([NONE, LZ4])), max_size=6)


def counts_of(batches: list[tuple[list[Rec], int]]) -> tuple[TimestampCounts, list[Rec]]:
    count = sum(len(records) for records, _ in batches)
    found, decoder, offset = TimestampCounts(OffsetRange(OF, 0, count), NOW), BatchDecoder(), 0
    for records, codec in batches:
        data = memoryview(batch(records, codec, base_offset=offset, producer_id=len(records)))
        header = RecordBatch(data, 0, len(data))
        stored = StoredBatch(data, 0, len(data), offset, offset + len(records) - 1, header)
        found.enter(stored.last_offset)
        alike = decoder.add_up(stored)
        if alike is None or not found.add_alike(*alike, stored.last_offset):
            found.add(decoder.decode(stored), offset, offset + len(records))
        offset += len(records)
    return found, [record for records, _ in batches for record in records]


def is_plausible(time: int) -> bool:
    return time > 0 and unit_of(time, NOW) is None


def test_records_added_one_by_one_and_as_whole_batch_share_one_row() -> None:
    """A batch with two minutes is collected first; the next batch, with one of these minutes, is added directly."""
    minute, another = 1_763_999_400_000, 1_754_000_000_000

    found, _ = counts_of([([Rec(minute), Rec(another)], NONE), ([Rec(minute), Rec(minute)], NONE)])

    rows = {row["earliest"]: (row["first_offset"], row["last_offset"]) for row in found.table().to_pylist()}
    assert rows == {minute: (0, 3), another: (1, 1)}


@pytest.mark.parametrize("most_exact_rows", [10**6, -1])
@given(BATCHES)
@settings(max_examples=60)
def test_every_record_is_counted_once_exactly_or_in_sums(
    most_exact_rows: int, batches: list[tuple[list[Rec], int]]
) -> None:
    before = timestamp_counts._MOST_EXACT_ROWS
    timestamp_counts._MOST_EXACT_ROWS = most_exact_rows
    try:
        found, records = counts_of(batches)
    finally:
        timestamp_counts._MOST_EXACT_ROWS = before

    rows = found.table().to_pylist()

    assert sum(row["records"] for row in rows) == len(records)
    assert sum(row["null_keys"] for row in rows) == sum(r.key is None for r in records)
    assert sum(row["bytes"] for row in rows) == sum(len(r.key or b"") + len(r.value or b"") for r in records)
    assert sum(row["batches"] for row in rows) == len(batches)
    times = sorted(r.timestamp for r in records)
    assert min((row["earliest"] for row in rows), default=0) == (times[0] if times else 0)
    assert max((row["latest"] for row in rows), default=0) == (times[-1] if times else 0)
    plausible = sum(is_plausible(time) for time in times)
    assert sum(row["records"] for row in rows if row["kind"] == TimestampKind.MILLISECONDS) == plausible
    for row in rows:
        held = [r.timestamp for r in records[row["first_offset"] : row["last_offset"] + 1]]
        assert row["earliest"] in held
        assert row["latest"] in held
        if row["kind"] == TimestampKind.MILLISECONDS and most_exact_rows > 0:
            assert row["latest"] // MINUTE_MS == row["earliest"] // MINUTE_MS


def test_ordered_valid_records_are_counted_in_one_row_per_minute() -> None:
    batches = [([Rec(NOW - 600_000 + i * 100 + j) for j in range(20)], LZ4) for i in range(0, 5000, 20)]

    found, records = counts_of(batches)

    rows = found.table().to_pylist()
    assert len(records) == 5000
    assert len(rows) <= 10
