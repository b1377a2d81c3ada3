"""Requests for log start offsets and their responses agree with the schema."""

import struct

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import parse_request_header
from sluicegate.protocol.log_start_request import log_start_request, log_starts_in
from sluicegate.protocol.messages.fetch import LIST_OFFSETS_REQUEST, LIST_OFFSETS_RESPONSE


def test_log_start_request_contains_earliest_offset_query_per_partition() -> None:
    frame = log_start_request({"one": [0, 7], "two": [1]}, -1)

    header = parse_request_header(frame, 1)
    asked = LIST_OFFSETS_REQUEST.parse(frame[header.body_at :], 1)
    assert (header.api_key, header.api_version, header.correlation_id) == (ApiKey.LIST_OFFSETS, 1, -1)
    assert asked["replica_id"] == -1
    assert {t["name"]: [(p["partition_index"], p["timestamp"]) for p in t["partitions"]] for t in asked["topics"]} == {
        "one": [(0, -2), (7, -2)],
        "two": [(1, -2)],
    }


def response_frame(*topics: tuple[str, list[tuple[int, int, int]]]) -> bytes:
    """Return a response with these topics: (name, [(partition, code, offset)])."""
    told = [
        {
            "name": name,
            "partitions": [
                {"partition_index": index, "error_code": code, "timestamp": -1, "offset": offset}
                for index, code, offset in partitions
            ],
        }
        for name, partitions in topics
    ]
    return bytes(4) + LIST_OFFSETS_RESPONSE.build({"topics": told}, 1)


def test_log_start_response_yields_offsets_of_partitions_without_error() -> None:
    told = log_starts_in(response_frame(("one", [(0, 0, 5), (7, 3, -1)]), ("two", [(1, 0, 1 << 40)])), 3)

    assert told == {("one", 0): 5, ("two", 1): 1 << 40}


def test_rejects_truncated_log_start_response() -> None:
    whole = response_frame(("one", [(0, 0, 5)]))

    for length in range(4, len(whole)):
        with pytest.raises(MalformedMessage):
            log_starts_in(whole[:length], 3)


@pytest.mark.parametrize(
    "told", [[("t", [(0, 0, 5), (1, 0, 5)])], [("t", [(0, 0, 5)]), ("u", [(0, 0, 5)])], [("t", []), ("u", [])]]
)
def test_rejects_log_start_response_with_more_partitions_than_requested(
    told: list[tuple[str, list[tuple[int, int, int]]]],
) -> None:
    with pytest.raises(MalformedMessage, match="requested"):
        log_starts_in(response_frame(*told), 1)


def test_rejects_impossible_log_start_count_without_iterating() -> None:
    with pytest.raises(MalformedMessage, match="4294967"):
        log_starts_in(bytes(4) + struct.pack(">ihi", 1, 0, 4294967) + bytes(1 << 20), 10)
