"""The conversion between Produce v0 to v2 and v3 agrees with the construct schema, based on Kafka's definitions."""

import pytest

from sluicegate.protocol.headers import build_request_header
from sluicegate.protocol.legacy_produce import in_older_version, with_batches, with_successes
from sluicegate.protocol.messages.produce import PRODUCE_REQUEST, PRODUCE_RESPONSE
from sluicegate.protocol.messages.schema import Value
from sluicegate.protocol.produce_request import walk_produce_request

OLD_VERSIONS = (0, 1, 2)
RESPONSE: Value = {
    "responses": [
        {
            "name": name,
            "partition_responses": [
                {"index": index, "error_code": code, "base_offset": 7 + index, "log_append_time_ms": 99}
                for index, code in enumerate(codes)
            ],
        }
        for name, codes in (("orders", (0, 2, 2)), ("none", ()), ("payments", (87,)))
    ],
    "throttle_time_ms": 33,
}
HEAD = b"\0\0\0\7"


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_produce_response_is_converted_to_the_older_version(version: int) -> None:
    frame = HEAD + PRODUCE_RESPONSE.build(RESPONSE, 3)

    assert bytes(in_older_version(frame, version, 20)) == HEAD + PRODUCE_RESPONSE.build(RESPONSE, version)


def test_with_successes_clears_errors_only_for_empty_partitions() -> None:
    frame = bytearray(HEAD + PRODUCE_RESPONSE.build(RESPONSE, 3))

    found = PRODUCE_RESPONSE.parse(bytes(with_successes(frame, {("orders", 1), ("payments", 0)}, 20))[4:], 3)

    orders, _, payments = (topic["partition_responses"] for topic in found["responses"])
    assert [(each["error_code"], each["base_offset"]) for each in orders] == [(0, 7), (0, -1), (2, 9)]
    assert [each["error_code"] for each in payments] == [87]


@pytest.mark.parametrize("version", OLD_VERSIONS)
@pytest.mark.parametrize("client_id", ["", "old-appliance"])
def test_legacy_request_is_converted_to_version_3_with_new_batches(version: int, client_id: str) -> None:
    partitions = [{"index": 4, "records": b"old"}, {"index": 0, "records": None}]
    topics = [{"name": "t", "partition_data": partitions}, {"name": "empty", "partition_data": []}]
    header = build_request_header(0, version, 7, client_id, 1)
    value = {"acks": 1, "timeout_ms": 1500, "topic_data": topics}
    older = walk_produce_request(bytearray(header + PRODUCE_REQUEST.build(value, version)), version, len(header), 99)

    made = with_batches(older, {(0, 0): b"new", (0, 1): b"newer"})

    new_header = build_request_header(0, 3, 7, client_id, 1)
    new = [{"index": 4, "records": b"new"}, {"index": 0, "records": b"newer"}]
    value = {"transactional_id": None, "acks": 1, "timeout_ms": 1500}
    topics = [{"name": "t", "partition_data": new}, {"name": "empty", "partition_data": []}]
    assert bytes(made.frame) == new_header + PRODUCE_REQUEST.build({**value, "topic_data": topics}, 3)
    assert (made.version, made.acks, made.transactional_id) == (3, 1, None)
    assert [bytes(made.records(0, p) or b"") for p in (0, 1)] == [b"new", b"newer"]
