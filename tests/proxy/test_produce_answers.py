"""Whose word stands in the answer to a request of which something was refused."""

from typing import Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages import produce
from protocol.messages.schema import Value
from protocol.produce_request import walk_produce_request
from proxy.log_starts import LogStarts
from proxy.produce_answers import PartlyRefused
from proxy.rewriting import AnswerRewriter
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import produce_body, topic_data
from validation.produce import JudgedRequest, Place
from validation.verdict import Accepted, Reason, Refused, Stage

NOW = 1_800_000_000_000
VERSION = 8
GOOD, BAD = batch([Rec(NOW)]), batch([Rec(1)])
TOO_OLD = Refused(ErrorCode.INVALID_TIMESTAMP, Reason.TIMESTAMP_BEFORE, "too old")


def partly(refused: dict[Place, Refused], *partitions: tuple[int, bytes], starts: LogStarts | None = None) -> Any:
    """A request for topic `t`, judged."""
    frame = bytearray(produce_body(VERSION, [topic_data("t", *partitions)]))
    request = walk_produce_request(frame, VERSION, 0)
    accepted = {(0, p): Accepted(1, 0) for p in range(len(partitions)) if (0, p) not in refused}
    judged = JudgedRequest(accepted, refused)
    return PartlyRefused(request, judged, starts if starts is not None else LogStarts(), NOW)


def answered(request: PartlyRefused, *entries: tuple[int, int, int], now: int = NOW) -> list[Value]:
    """The client's entries, when the broker says these: (partition, code, log start offset)."""
    said = [
        {"index": index, "error_code": code, "base_offset": 5, "log_append_time_ms": -1, "log_start_offset": start}
        | {"record_errors": [], "error_message": None}
        for index, code, start in entries
    ]
    body = produce.RESPONSE.build({"responses": [{"name": "t", "partition_responses": said}]}, VERSION)
    rewriter: AnswerRewriter = None  # type: ignore[assignment]  # v8 has no addresses
    frame = request.finish(bytearray(bytes(4) + body), 4, rewriter, now)
    value = produce.RESPONSE.parse(frame[4:], VERSION)
    found: list[Value] = value["responses"][0]["partition_responses"]
    return found


def test_our_verdict_takes_the_place_of_the_brokers_complaint_and_keeps_its_log_start() -> None:
    request = partly({(0, 1): TOO_OLD}, (0, GOOD), (1, BAD))

    first, second = answered(request, (0, 0, 3), (1, ErrorCode.INVALID_RECORD, 7))

    assert (first["error_code"], first["base_offset"]) == (0, 5)
    assert (second["error_code"], second["base_offset"], second["log_start_offset"]) == (32, -1, 7)
    assert second["error_message"] == "too old"


@pytest.mark.parametrize("code", [3, 6, 19, 29, 48, 56, -1])
def test_what_comes_before_the_content_is_the_brokers_word(code: int) -> None:
    (entry,) = answered(partly({(0, 0): TOO_OLD}, (0, BAD)), (0, code, -1))

    assert (entry["error_code"], entry["error_message"]) == (code, None)


@pytest.mark.parametrize("code", [0, 2, 4, 35, 87])
def test_no_broker_makes_a_success_of_what_was_refused(code: int) -> None:
    (entry,) = answered(partly({(0, 0): TOO_OLD}, (0, BAD)), (0, code, 0))

    assert entry["error_code"] == ErrorCode.INVALID_TIMESTAMP


def test_the_log_start_is_asked_for_once_a_second() -> None:
    starts = LogStarts()
    first = partly({(0, 0): TOO_OLD}, (0, BAD), starts=starts)
    answered(first, (0, ErrorCode.INVALID_RECORD, 7))

    second = partly({(0, 0): TOO_OLD}, (0, BAD), starts=starts)
    (entry,) = answered(second, (0, ErrorCode.CORRUPT_MESSAGE, -1))

    assert first.stand_ins[0, 0][:8] == (1).to_bytes(8, "big")
    assert second.stand_ins[0, 0][:8] == bytes(8)
    assert entry["log_start_offset"] == 7


def test_of_a_partition_that_is_named_twice_the_last_batch_counts() -> None:
    superseded = partly({(0, 0): TOO_OLD}, (0, BAD), (0, GOOD))
    decisive = partly({(0, 1): TOO_OLD}, (0, GOOD), (0, BAD))
    against_rules = partly(
        {(0, 0): Refused(ErrorCode.INVALID_RECORD, Reason.NO_BATCH, stage=Stage.PARTITION)}, (0, b""), (0, GOOD)
    )

    assert not superseded.refuses_anything
    assert answered(superseded, (0, 0, 0))[0]["error_code"] == 0
    assert decisive.refuses_anything
    assert against_rules.refuses_anything


def test_a_request_that_is_refused_whole_has_one_code_for_all_of_it() -> None:
    """A head behind the first batch over which a broker fails; it is found before any partition's content."""
    frame = bytearray(produce_body(2, [topic_data("t", (0, GOOD + bytes(30)), (1, BAD))]))
    request = walk_produce_request(frame, 2, 0)
    corrupt = Refused(ErrorCode.CORRUPT_MESSAGE, Reason.MAGIC)
    made = PartlyRefused(request, JudgedRequest({}, {(0, 0): corrupt, (0, 1): TOO_OLD}), LogStarts(), NOW)

    assert made.stand_ins[0, 0].endswith(bytes(17))
    for codes, expected in (([2, 2], [2, 2]), ([3, 2], [3, 32])):
        said = [
            {"index": i, "error_code": code, "base_offset": -1, "log_append_time_ms": -1}
            for i, code in enumerate(codes)
        ]
        body = produce.RESPONSE.build(
            {"responses": [{"name": "t", "partition_responses": said}], "throttle_time_ms": 0}, 2
        )
        answer = made.finish(bytearray(bytes(4) + body), 4, None, NOW)  # type: ignore[arg-type]
        found = produce.RESPONSE.parse(answer[4:], 2)["responses"][0]["partition_responses"]
        assert [entry["error_code"] for entry in found] == expected
