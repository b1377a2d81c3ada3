"""In merged responses, the broker's entry is kept, or the proxy's verdict replaces it."""

from typing import Any

import pytest

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from sluicegate.protocol.messages.schema import Value
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.produce_response import walk_produce_response
from sluicegate.proxy.responses.log_starts import LogStarts
from sluicegate.proxy.responses.produce_responses import PartitionKey, StandInRequest
from sluicegate.proxy.responses.rewriting import ResponseRewriter
from sluicegate.validation.validated_request import Place, ValidatedRequest
from sluicegate.validation.verdict import Accepted, FaultStage, Finding, Reason
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
VERSION = 8
GOOD, BAD = batch([Rec(NOW)]), batch([Rec(1)])
TOO_OLD = Finding(ErrorCode.INVALID_TIMESTAMP, Reason.TIMESTAMP_TOO_OLD, "too old")


def stand_in_request(
    rejected: dict[Place, Finding], *partitions: tuple[int, bytes], starts: LogStarts | None = None
) -> Any:
    """Return a validated request for topic `t`."""
    frame = bytearray(produce_body(VERSION, [topic_data("t", *partitions)]))
    request = walk_produce_request(frame, VERSION, 0, 100)
    accepted = {(0, p): Accepted(1, 0) for p in range(len(partitions)) if (0, p) not in rejected}
    validated = ValidatedRequest(accepted, rejected)
    return StandInRequest(request, validated, starts if starts is not None else LogStarts(), NOW, _go_on)


def client_entries(request: StandInRequest, *entries: tuple[int, int, int]) -> list[Value]:
    """Return the client's entries for these of the broker: (partition, code, log start offset)."""
    said = [
        {"index": index, "error_code": code, "base_offset": 5, "log_append_time_ms": -1, "log_start_offset": start}
        | {"record_errors": [], "error_message": None}
        for index, code, start in entries
    ]
    body = PRODUCE_RESPONSE.build({"responses": [{"name": "t", "partition_responses": said}]}, VERSION)
    rewriter: ResponseRewriter = None  # v8 contains no addresses
    response = walk_produce_response(bytearray(bytes(4) + body), VERSION, 4, 100)
    frame = b"".join(request.merged(response, rewriter, None))
    value = PRODUCE_RESPONSE.parse(frame[4:], VERSION)
    found: list[Value] = value["responses"][0]["partition_responses"]
    return found


def test_the_proxys_verdict_replaces_the_brokers_corrupt_message_error() -> None:
    request = stand_in_request({(0, 1): TOO_OLD}, (0, GOOD), (1, BAD))
    request.learn_log_start(PartitionKey("t", 1), 7, NOW)

    first, second = client_entries(request, (0, 0, 3), (1, ErrorCode.CORRUPT_MESSAGE, -1))

    assert (first["error_code"], first["base_offset"]) == (0, 5)
    assert (second["error_code"], second["base_offset"], second["log_start_offset"]) == (32, -1, 7)
    assert second["error_message"] == "too old"


@pytest.mark.parametrize("code", [3, 6, 19, 29, 48, 56, -1])
def test_a_brokers_error_unrelated_to_contents_is_kept(code: int) -> None:
    (entry,) = client_entries(stand_in_request({(0, 0): TOO_OLD}, (0, BAD)), (0, code, -1))

    assert (entry["error_code"], entry["error_message"]) == (code, None)


@pytest.mark.parametrize("code", [0, 2, 4, 35, 87])
def test_rejected_batch_gets_error_of_proxy_if_broker_accepts_it_or_blames_contents(code: int) -> None:
    (entry,) = client_entries(stand_in_request({(0, 0): TOO_OLD}, (0, BAD)), (0, code, 0))

    assert entry["error_code"] == ErrorCode.INVALID_TIMESTAMP


def test_log_start_is_requested_at_most_once_a_second() -> None:
    starts = LogStarts()
    first = stand_in_request({(0, 0): TOO_OLD}, (0, BAD), starts=starts)
    first.learn_log_start(PartitionKey("t", 0), 7, NOW)

    second = stand_in_request({(0, 0): TOO_OLD}, (0, BAD), starts=starts)
    (entry,) = client_entries(second, (0, ErrorCode.CORRUPT_MESSAGE, -1))

    assert list(first.asked_log_starts) == [("t", 0)]
    assert list(second.asked_log_starts) == []
    assert entry["log_start_offset"] == 7


def test_log_start_of_duplicate_partition_is_requested_once() -> None:
    request = stand_in_request({(0, 0): TOO_OLD, (0, 1): TOO_OLD}, (0, BAD), (0, BAD))

    assert list(request.asked_log_starts) == [("t", 0)]


def known_log_starts(*partitions: int) -> LogStarts:
    starts = LogStarts()
    for partition in partitions:
        starts.learn("t", partition, 7, NOW)
    return starts


def test_batch_is_rejected_without_broker_if_partition_was_recently_proven() -> None:
    first = stand_in_request({(0, 0): TOO_OLD}, (0, BAD), starts=known_log_starts(0))
    assert first.response_alone({}, 9, NOW) is None
    asked = client_entries(first, (0, ErrorCode.CORRUPT_MESSAGE, -1))
    proven = dict.fromkeys(((partition_key, -1) for partition_key in first.proven_partitions), NOW)

    alone = stand_in_request({(0, 0): TOO_OLD}, (0, BAD), starts=known_log_starts(0)).response_alone(
        proven, 9, NOW + 999
    )

    assert alone is not None
    assert alone[:4] == (9).to_bytes(4, "big")
    assert PRODUCE_RESPONSE.parse(alone[4:], VERSION)["responses"][0]["partition_responses"] == asked


@pytest.mark.parametrize("later_ms", [-1, 1000])
def test_expired_proof_of_partition_is_not_reused(later_ms: int) -> None:
    request = stand_in_request({(0, 0): TOO_OLD}, (0, BAD), starts=known_log_starts(0))

    assert request.response_alone({(PartitionKey("t", 0), -1): NOW}, 9, NOW + later_ms) is None


@pytest.mark.parametrize(
    ("rejected", "partitions", "acks"),
    [
        ({(0, 0): TOO_OLD}, [(0, BAD), (1, GOOD)], -1),  # the broker has a batch to store
        ({(0, 0): TOO_OLD, (0, 1): TOO_OLD}, [(0, BAD), (0, BAD)], -1),  # the request names the partition twice
        ({(0, 0): TOO_OLD}, [(0, BAD)], 1),  # with acks=1 the broker did not check whether there are enough replicas
        ({(0, 0): TOO_OLD}, [(0, BAD)], 2),
        ({(0, 0): TOO_OLD}, [(0, batch([Rec(1)], flags=0x10, producer_id=7, producer_epoch=0, base_sequence=0))], -1),
        ({(0, 0): Finding(ErrorCode.INVALID_RECORD, Reason.NO_BATCH, stage=FaultStage.PARTITION)}, [(0, b"")], -1),
    ],
)
def test_request_is_forwarded_if_broker_may_respond_differently(
    rejected: dict[Place, Finding], partitions: list[tuple[int, bytes]], acks: int
) -> None:
    frame = bytearray(produce_body(VERSION, [topic_data("t", *partitions)], acks))
    request = walk_produce_request(frame, VERSION, 0, 100)
    validated = ValidatedRequest({(0, 1): Accepted(1, 0)} if len(rejected) < len(partitions) else {}, rejected)
    proven = {(PartitionKey("t", index), -1): NOW for index in (0, 1)}

    assert (
        StandInRequest(request, validated, known_log_starts(0, 1), NOW, _go_on).response_alone(proven, 9, NOW) is None
    )


def test_not_leader_error_does_not_mark_partition_as_proven() -> None:
    request = stand_in_request({(0, 0): TOO_OLD}, (0, BAD), starts=known_log_starts(0))

    client_entries(request, (0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1))

    assert request.proven_partitions == []


def test_last_batch_of_duplicate_partition_determines_rejection() -> None:
    superseded = stand_in_request({(0, 0): TOO_OLD}, (0, BAD), (0, GOOD))
    decisive = stand_in_request({(0, 1): TOO_OLD}, (0, GOOD), (0, BAD))
    against_rules = stand_in_request(
        {(0, 0): Finding(ErrorCode.INVALID_RECORD, Reason.NO_BATCH, stage=FaultStage.PARTITION)}, (0, b""), (0, GOOD)
    )

    assert not superseded.rejects_anything
    assert client_entries(superseded, (0, 0, 0))[0]["error_code"] == 0
    assert decisive.rejects_anything
    assert against_rules.rejects_anything


def test_request_rejected_as_a_whole_by_broker_keeps_broker_error_code() -> None:
    """A later head at which a broker fails before it checks the content of any partition."""
    frame = bytearray(produce_body(2, [topic_data("t", (0, GOOD + bytes(30)), (1, BAD))]))
    request = walk_produce_request(frame, 2, 0, 100)
    corrupt = Finding(ErrorCode.CORRUPT_MESSAGE, Reason.UNSUPPORTED_MAGIC)
    made = StandInRequest(request, ValidatedRequest({}, {(0, 0): corrupt, (0, 1): TOO_OLD}), LogStarts(), NOW, _go_on)

    assert made.stand_ins[0, 0].endswith(bytes(17))
    for codes, expected in (([2, 2], [2, 2]), ([3, 2], [3, 32])):
        said = [
            {"index": i, "error_code": code, "base_offset": -1, "log_append_time_ms": -1}
            for i, code in enumerate(codes)
        ]
        body = PRODUCE_RESPONSE.build(
            {"responses": [{"name": "t", "partition_responses": said}], "throttle_time_ms": 0}, 2
        )
        parts = made.merged(walk_produce_response(bytearray(bytes(4) + body), 2, 4, 100), None, None)
        answer = b"".join(parts)
        found = PRODUCE_RESPONSE.parse(answer[4:], 2)["responses"][0]["partition_responses"]
        assert [entry["error_code"] for entry in found] == expected


def _go_on() -> None:
    """Do nothing: no other thread waits."""
