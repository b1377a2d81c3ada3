"""Only the timestamps of a batch change, compared with an independent writer and reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.compression import compress
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.record_batch import HEADER_BYTES, RecordBatch
from sluicegate.protocol.records.restamp import NewTime, restamp_records, with_payload
from tests.wire.batches import Rec, batch, record

LONGS = st.integers(-(2**63), 2**63 - 1)
RECORDS = st.lists(
    st.builds(
        Rec,
        LONGS,
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.binary(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
    ),
    min_size=1,
    max_size=10,
)


def free() -> DecompressionBudget:
    return DecompressionBudget(1 << 40, 0, lambda: None)


def restamped(data: bytes, new_time: NewTime) -> bytes | None:
    head = RecordBatch(memoryview(data), 0, len(data))
    found = restamp_records(memoryview(data)[HEADER_BYTES:], head.record_count, head.base_timestamp, new_time, free())
    if found is None:
        return None
    return with_payload(head, bytes(found.payload), found.base_timestamp, found.max_timestamp)


@given(records=RECORDS, times=st.lists(LONGS, min_size=10, max_size=10), producer=LONGS)
def test_the_result_is_the_batch_that_a_client_would_send(records: list[Rec], times: list[int], producer: int) -> None:
    state = {"producer_id": producer, "producer_epoch": 7, "base_sequence": 11, "leader_epoch": 5}
    expected = [Rec(time, r.key, r.value, r.headers) for time, r in zip(times, records, strict=False)]

    found = restamped(batch(records, **state), lambda index, _: times[index])

    assert found == batch(expected, **state)


@given(records=RECORDS)
def test_the_function_receives_each_records_time(records: list[Rec]) -> None:
    seen: list[int] = []

    def kept(_: int, time: int) -> int:
        seen.append(time)
        return time

    assert restamped(batch(records), kept) == batch(records)
    assert seen == [r.timestamp for r in records]


ONE = record(Rec(5), 0, 5)
NOT_UNDERSTOOD = {
    "a length that is too small": bytes([ONE[0] - 2]) + ONE[1:],
    "a length that is too large": bytes([ONE[0] + 2]) + ONE[1:] + b"\0",
    "a record that ends within": ONE[:-1],
    "bytes after the last": ONE + b"\0",
    "nothing": b"",
    "a negative count of headers": ONE[:-1] + b"\x01",
}


@pytest.mark.parametrize("payload", NOT_UNDERSTOOD.values(), ids=list(NOT_UNDERSTOOD))
def test_an_invalid_batch_stays_unchanged(payload: bytes) -> None:
    assert restamped(batch([Rec(5)], payload=payload), lambda _, time: time) is None


def test_a_record_without_a_new_time_leaves_the_batch_unchanged() -> None:
    assert restamped(batch([Rec(5), Rec(6)]), lambda index, time: None if index else time) is None


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("size", [0, 1, 32 * 1024, 200_000])
def test_a_compressed_batch_keeps_its_codec(codec: Codec, size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    found = Decompressor().decompress(codec, memoryview(compress(codec, data[:size])), 1 << 30)

    assert found.failure is None
    assert bytes(found.data) == data[:size]
