"""The hand-written reader of batch headers agrees with struct, for any value of any field."""

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.records.record_batch import HEADER, HEADER_BYTES, RecordBatch

INT8, INT16, INT32, INT64 = (st.integers(-(2**bits), 2**bits - 1) for bits in (7, 15, 31, 63))
UINT32 = st.integers(0, 2**32 - 1)
FIELDS = {
    "base_offset": INT64,
    "batch_length": INT32,
    "partition_leader_epoch": INT32,
    "magic": INT8,
    "crc": UINT32,
    "attributes": INT16,
    "last_offset_delta": INT32,
    "base_timestamp": INT64,
    "max_timestamp": INT64,
    "producer_id": INT64,
    "producer_epoch": INT16,
    "base_sequence": INT32,
    "record_count": INT32,
}


@given(st.fixed_dictionaries(FIELDS), st.integers(0, 5))
def test_batch_header_fields_equal_those_unpacked_by_struct(fields: dict[str, int], start: int) -> None:
    data = bytes(start) + HEADER.pack(*(fields[name] for name in FIELDS))

    found = RecordBatch(memoryview(data), start, len(data))

    assert {name: getattr(found, name) for name in fields} == fields
    assert (found.start, found.end, found.size) == (start, start + HEADER_BYTES, HEADER_BYTES)
