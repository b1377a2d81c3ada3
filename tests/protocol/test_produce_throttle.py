"""The throttle time of Produce answers, put where the schema reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import build_response_header
from sluicegate.protocol.messages import produce
from sluicegate.protocol.produce_tail import with_throttle_time

_TOPIC = {"name": "orders", "topic_id": bytes(16)}


def _response(version: int, throttle_ms: int) -> bytearray:
    entry = {"index": 3, "error_code": 87, "base_offset": -1, "log_append_time_ms": -1, "log_start_offset": 5}
    entry |= {"record_errors": [{"batch_index": 1, "batch_index_error_message": "no"}], "error_message": "bad"}
    body = {"responses": [{**_TOPIC, "partition_responses": [entry] * 2}], "throttle_time_ms": throttle_ms}
    return bytearray(build_response_header(7, 1 if version >= 9 else 0) + produce.RESPONSE.build(body, version))


@pytest.mark.parametrize("version", range(14))
@given(brokers=st.integers(0, 2**31 - 1), ours=st.integers(1, 2**31 - 1))
def test_the_longer_wait_is_told_and_nothing_else_changes(version: int, brokers: int, ours: int) -> None:
    answer = with_throttle_time(_response(version, brokers), version, ours)

    assert answer == _response(version, max(brokers, ours))


@pytest.mark.parametrize("version", [1, 8, 9, 13])
def test_what_ends_before_is_malformed(version: int) -> None:
    whole = _response(version, 0)

    for end in range(len(whole) - (2 if version >= 9 else 1)):
        with pytest.raises(MalformedMessage):
            with_throttle_time(whole[:end], version, 5)
