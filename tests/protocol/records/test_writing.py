"""A written batch equals the batch of an independent writer."""

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.records.writing import NewRecord, write_batch
from tests.wire.batches import Rec, batch

_INT64 = st.integers(-(2**63), 2**63 - 1)
_DATA = st.none() | st.binary(max_size=200)
_HEADERS = st.lists(st.tuples(st.binary(max_size=20), _DATA), max_size=4).map(tuple)


@given(st.lists(st.builds(NewRecord, _INT64, _DATA, _DATA, _HEADERS), min_size=1, max_size=5))
def test_written_batch_equals_that_of_the_test_encoder(records: list[NewRecord]) -> None:
    same = [Rec(r.timestamp, r.key, r.value, r.headers) for r in records]

    assert write_batch(records) == batch(same)
    assert write_batch(records, (5, 6, 7)) == batch(same, producer_id=5, producer_epoch=6, base_sequence=7)
