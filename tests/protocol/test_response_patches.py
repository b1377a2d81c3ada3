"""Patched addresses at the end of a Produce response agree with the construct schema."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import build_response_header
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from sluicegate.protocol.messages.schema import Value
from sluicegate.protocol.produce_response import walk_produce_response
from sluicegate.protocol.response_patches import with_addresses, with_throttle_time

NAME = st.text("abc.é", max_size=200)
ENDPOINT = st.fixed_dictionaries(
    {
        "node_id": st.integers(0, 2**31 - 1),
        "host": NAME,
        "port": st.integers(0, 65535),
        "rack": st.none() | NAME,
    }
)


def address_of(node_id: int, host: str, port: int) -> tuple[str, int] | None:
    """Return the proxy's address for a broker; every third broker has no listener."""
    return None if node_id % 3 == 0 else (f"proxy-of-{host}", port ^ 1)


def response_and_tail(version: int, endpoints: list[Value]) -> tuple[bytes, bytes]:
    """Return the bytes before the tail, and the tail."""
    body = PRODUCE_RESPONSE.build({"responses": [], "throttle_time_ms": 5, "node_endpoints": endpoints}, version)
    tail = bytes(walk_produce_response(body, version, 0, 100).tail)
    return body[: len(body) - len(tail)], tail


@given(st.integers(10, 13), st.lists(ENDPOINT, max_size=4))
def test_rewriting_node_endpoints_changes_only_hosts_and_ports(version: int, endpoints: list[Value]) -> None:
    before, tail = response_and_tail(version, endpoints)

    found = PRODUCE_RESPONSE.parse(before + with_addresses(tail, address_of), version)

    told = [(e, address_of(e["node_id"], e["host"], e["port"])) for e in endpoints]
    expected = [{**e, "host": ours[0], "port": ours[1]} for e, ours in told if ours is not None]
    assert (found["throttle_time_ms"], found["node_endpoints"]) == (5, expected)


def test_a_produce_response_without_endpoints_omits_the_field() -> None:
    _, tail = response_and_tail(13, [{"node_id": 3, "host": "h", "port": 1, "rack": None}])
    _, none = response_and_tail(13, [])

    assert with_addresses(tail, address_of) == none


def test_unknown_tags_of_produce_responses_are_forwarded_unchanged() -> None:
    unknown = b"\x07\x03abc"
    rack_and_tags = b"\x00\x01\x05\x02xy"  # no rack, then one tag
    endpoint = b"\0\0\0\1" + b"\x02h" + b"\0\0\0\1" + rack_and_tags
    endpoints = b"\x00" + bytes([1 + len(endpoint)]) + b"\x02" + endpoint

    found = with_addresses(bytes(4) + b"\x02" + endpoints + unknown, lambda *_: ("hh", 2))

    ours = b"\0\0\0\1" + b"\x03hh" + b"\0\0\0\2" + rack_and_tags
    assert found == bytes(4) + b"\x02" + b"\x00" + bytes([1 + len(ours)]) + b"\x02" + ours + unknown


@given(st.lists(ENDPOINT, min_size=1, max_size=3), st.data())
def test_a_truncated_produce_response_tail_is_malformed(endpoints: list[Value], data: st.DataObject) -> None:
    _, tail = response_and_tail(13, endpoints)
    with pytest.raises(MalformedMessage):
        with_addresses(tail[: data.draw(st.integers(4, len(tail) - 1))], address_of)


_TOPIC = {"name": "orders", "topic_id": bytes(16)}


def _response(version: int, throttle_ms: int) -> bytearray:
    entry = {"index": 3, "error_code": 87, "base_offset": -1, "log_append_time_ms": -1, "log_start_offset": 5}
    entry |= {"record_errors": [{"batch_index": 1, "batch_index_error_message": "no"}], "error_message": "bad"}
    body = {"responses": [{**_TOPIC, "partition_responses": [entry] * 2}], "throttle_time_ms": throttle_ms}
    return bytearray(build_response_header(7, 1 if version >= 9 else 0) + PRODUCE_RESPONSE.build(body, version))


@pytest.mark.parametrize("version", range(14))
@given(brokers=st.integers(0, 2**31 - 1), ours=st.integers(1, 2**31 - 1))
def test_with_throttle_time_keeps_the_longer_throttle_time(version: int, brokers: int, ours: int) -> None:
    response_and_tail = with_throttle_time(_response(version, brokers), version, ours)

    assert response_and_tail == _response(version, max(brokers, ours))


@pytest.mark.parametrize("version", [1, 8, 9, 13])
def test_a_response_without_a_throttle_time_is_malformed(version: int) -> None:
    whole = _response(version, 0)

    for end in range(len(whole) - (2 if version >= 9 else 1)):
        with pytest.raises(MalformedMessage):
            with_throttle_time(whole[:end], version, 5)
