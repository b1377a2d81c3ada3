"""Totals beside the records that they are of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.records.columns import read_totals
from sluicegate.protocol.records.record_batch import HEADER_BYTES, RecordBatch
from tests.wire.batches import Rec, batch

TIMES = st.integers(-(2**63), 2**63 - 1)
BYTES = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.binary(max_size=5), BYTES), max_size=3)


@given(st.lists(st.builds(Rec, TIMES, BYTES, BYTES, HEADERS), min_size=1, max_size=30))
def test_they_are_those_of_the_records(records: list[Rec]) -> None:
    data = memoryview(batch(records))
    header = RecordBatch(data, 0, len(data))

    found = read_totals(data, HEADER_BYTES, len(data), len(records), header.base_timestamp & (2**64 - 1))

    assert found.records == len(records)
    assert found.earliest == min(rec.timestamp for rec in records)
    assert found.latest == max(rec.timestamp for rec in records)
    assert found.null_keys == sum(rec.key is None for rec in records)
    assert found.bytes == sum(len(rec.key or b"") + len(rec.value or b"") for rec in records)


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_a_payload_that_ends_too_early_is_read_as_far_as_it_goes(cut: int) -> None:
    data = memoryview(batch([Rec(1000 + i) for i in range(5)]))

    found = read_totals(data, HEADER_BYTES, len(data) - cut, 5, 1000)

    assert found.records < 5
