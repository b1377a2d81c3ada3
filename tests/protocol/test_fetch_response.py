"""The hand-written walk over Fetch responses agrees with the construct schema."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.fetch_response import VERSION, fetched_partition
from tests.wire.fetch_response import FETCH_RESPONSE

INT64 = st.integers(-(2**63), 2**63 - 1)
CODES = st.integers(-1, 130)


@given(
    topic=st.text(alphabet="abc.-_", min_size=1, max_size=249),
    codes=st.tuples(CODES, CODES),
    offsets=st.tuples(INT64, INT64, INT64),
    aborted=st.none() | st.lists(st.tuples(INT64, INT64), max_size=200),
    records=st.none() | st.binary(max_size=300),
    snapshot=st.integers(0, 10),
)
def test_fetch_response_fields_equal_those_of_the_schema(
    topic: str,
    codes: tuple[int, int],
    offsets: tuple[int, int, int],
    aborted: list[tuple[int, int]] | None,
    records: bytes | None,
    snapshot: int,
) -> None:
    named = None if aborted is None else [{"producer_id": p, "first_offset": o} for p, o in aborted]
    partition = {
        "partition_index": 3,
        "error_code": codes[1],
        "high_watermark": offsets[0],
        "last_stable_offset": offsets[1],
        "log_start_offset": offsets[2],
        "aborted_transactions": named,
        "preferred_read_replica": -1,
        "records": records,
        "snapshot_id": {"end_offset": snapshot, "epoch": snapshot},
    }
    body = {"error_code": codes[0], "session_id": 0, "responses": [{"topic": topic, "partitions": [partition]}]}

    code, found = fetched_partition(memoryview(FETCH_RESPONSE.build(body, VERSION)))

    assert code == codes[0]
    assert found is not None
    assert found.error_code == codes[1]
    assert (found.high_watermark, found.log_start_offset) == (offsets[0], offsets[2])
    assert found.aborted == tuple(aborted or ())
    assert bytes(found.records) == (records or b"")


def test_an_empty_fetch_response_has_its_error_code_and_no_partition() -> None:
    body = {"error_code": 3, "session_id": 0, "responses": []}

    assert fetched_partition(memoryview(FETCH_RESPONSE.build(body, VERSION))) == (3, None)


def test_a_truncated_fetch_response_is_malformed() -> None:
    partition = {
        "partition_index": 0,
        "error_code": 0,
        "high_watermark": 9,
        "aborted_transactions": [{"producer_id": 1, "first_offset": 2}],
        "records": b"x" * 20,
    }
    whole = FETCH_RESPONSE.build(
        {"error_code": 0, "session_id": 0, "responses": [{"topic": "t", "partitions": [partition]}]}, VERSION
    )
    tags_behind_the_records = 3
    for size in range(len(whole) - tags_behind_the_records):
        if size in (12, 13):
            continue  # a response without topics is complete before its tags
        with pytest.raises(MalformedMessage):
            fetched_partition(memoryview(whole[:size]))
