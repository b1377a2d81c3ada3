"""Hand-written Produce responses and walks agree with the construct schema."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.errors import ErrorCode, MalformedMessage
from sluicegate.protocol.messages.produce import PRODUCE_REQUEST, PRODUCE_RESPONSE
from sluicegate.protocol.messages.schema import Value
from sluicegate.protocol.produce_response import (
    PartitionRejection,
    RecordError,
    TopicKey,
    encode_rejection,
    response_of,
    tail_with_endpoints,
    walk_produce_response,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.none() | st.text("abc é", max_size=20)


@st.composite
def random_responses(draw: st.DrawFn) -> tuple[int, Value]:
    version = draw(st.sampled_from(PRODUCE_REQUEST.versions))
    entry: dict[str, st.SearchStrategy[object]] = {
        "index": st.integers(0, 2**31 - 1),
        "error_code": st.sampled_from((0, 6, 87)),
        "base_offset": INT64,
    }
    if version >= 2:
        entry["log_append_time_ms"] = INT64
    if version >= 5:
        entry["log_start_offset"] = INT64
    if version >= 8:
        error = {"batch_index": st.integers(0, 9), "batch_index_error_message": TEXT}
        entry |= {"record_errors": st.lists(st.fixed_dictionaries(error), max_size=3), "error_message": TEXT}
    if version >= 10:
        entry["current_leader"] = st.fixed_dictionaries({"leader_id": st.integers(0, 9), "leader_epoch": st.just(4)})
    key = {"topic_id": st.binary(min_size=16, max_size=16)} if version >= 13 else {"name": st.text("ab.é", max_size=5)}
    topic = {
        **key,
        "partition_responses": st.lists(st.fixed_dictionaries(entry), max_size=3, unique_by=lambda e: e["index"]),
    }
    unique = (lambda t: t["topic_id"]) if version >= 13 else (lambda t: t["name"])
    value: Value = {"responses": draw(st.lists(st.fixed_dictionaries(topic), max_size=3, unique_by=unique))}
    if version >= 1:
        value["throttle_time_ms"] = draw(st.integers(0, 2**31 - 1))
    if version >= 10 and draw(st.booleans()):
        value["node_endpoints"] = [{"node_id": 1, "host": "h", "port": 9092, "rack": None}]
    return version, value


def framed_response(value: Value, version: int) -> tuple[bytes, int]:
    header = b"\0\0\0\7" + (b"\0" if version >= 9 else b"")
    return header + PRODUCE_RESPONSE.build(value, version), len(header)


@given(random_responses())
def test_produce_response_fields_equal_those_of_the_schema(case: tuple[int, Value]) -> None:
    version, value = case
    frame, body_at = framed_response(value, version)

    walked = walk_produce_response(frame, version, body_at, 100)

    expected = [
        (topic["topic_id" if version >= 13 else "name"], p["index"], p["error_code"], p.get("log_start_offset", -1))
        for topic in value["responses"]
        for p in topic["partition_responses"]
    ]
    assert [(e.topic, e.index, e.code, e.log_start_offset) for e in walked.entries] == expected
    assert walked.has_node_endpoints == bool(value.get("node_endpoints"))


@given(random_responses(), st.randoms(use_true_random=False))
def test_replacing_entries_leaves_the_rest_of_the_produce_response_unchanged(
    case: tuple[int, Value], chance: random.Random
) -> None:
    version, value = case
    frame, body_at = framed_response(value, version)
    walked = walk_produce_response(frame, version, body_at, 100)
    rejected = {i for i in range(len(walked.entries)) if chance.random() < 0.5}
    rejection = PartitionRejection(ErrorCode.INVALID_RECORD, "why", (RecordError(1, "é"),), 17)

    parts = walked.with_entries(
        {i: encode_rejection(walked.entries[i].index, rejection, version) for i in rejected}, walked.tail
    )
    changed = b"".join(parts)

    entries = [entry for topic in value["responses"] for entry in topic["partition_responses"]]
    for i in rejected:
        entries[i] |= {"error_code": 87, "base_offset": -1}
        entries[i].pop("current_leader", None)
        for name, said in {
            "log_append_time_ms": -1,
            "log_start_offset": 17,
            "record_errors": [{"batch_index": 1, "batch_index_error_message": "é"}],
            "error_message": "why",
        }.items():
            if name in entries[i]:
                entries[i][name] = said
    assert changed == framed_response(value, version)[0]


@pytest.mark.parametrize("version", range(14))
def test_rejection_response_has_an_entry_for_each_partition(version: int) -> None:
    topics: dict[TopicKey, list[int]] = {"one": [4, 0], "two": [1]}
    if version >= 13:
        topics = {bytes(range(16)): [4, 0], bytes(16): [1]}
    rejection = PartitionRejection(ErrorCode.INVALID_RECORD, "why", (RecordError(1, "é"),), 17)

    made = response_of(
        version, {t: [encode_rejection(i, rejection, version) for i in many] for t, many in topics.items()}
    )

    responses = PRODUCE_RESPONSE.parse(made, version)["responses"]
    assert [r["topic_id" if version >= 13 else "name"] for r in responses] == list(topics)
    assert [[p["index"] for p in r["partition_responses"]] for r in responses] == list(topics.values())
    assert {p["error_code"] for r in responses for p in r["partition_responses"]} == {87}
    assert PRODUCE_RESPONSE.build(PRODUCE_RESPONSE.parse(made, version), version) == made


@given(random_responses(), st.data())
def test_truncated_produce_response_is_malformed_or_lacks_its_tail(
    case: tuple[int, Value], data: st.DataObject
) -> None:
    version, value = case
    body = PRODUCE_RESPONSE.build(value, version)
    cut = data.draw(st.integers(0, len(body)))
    try:
        walked = walk_produce_response(body[:cut], version, 0, 100)
    except MalformedMessage:
        return
    whole = walk_produce_response(body, version, 0, 100)
    assert walked.entries == whole.entries[: len(walked.entries)]


@given(random_responses())
def test_tail_position_equals_that_of_a_full_produce_response_walk(case: tuple[int, Value]) -> None:
    version, value = case
    frame, body_at = framed_response(value, version)
    walked = walk_produce_response(frame, version, body_at, 100)

    assert tail_with_endpoints(frame, version, body_at) == (walked.tail_at if walked.has_node_endpoints else -1)


@pytest.mark.parametrize("version", PRODUCE_REQUEST.versions)
def test_rejects_produce_response_with_more_partitions_than_the_request(version: int) -> None:
    key = {"topic_id": bytes(16)} if version >= 13 else {"name": "t"}
    entries = [{"index": n, "error_code": 0, "base_offset": 0} for n in range(9)]
    body = PRODUCE_RESPONSE.build({"responses": [{**key, "partition_responses": entries}]}, version)

    assert len(walk_produce_response(body, version, 0, 10).entries) == 9
    with pytest.raises(MalformedMessage, match="more partitions than the request"):
        walk_produce_response(body, version, 0, 9)


@pytest.mark.parametrize("count", [-2, -1, -(2**31), 2**31 - 1])
def test_rejects_impossible_counts_in_produce_response(count: int) -> None:
    body = count.to_bytes(4, "big", signed=True) + bytes(100)

    with pytest.raises(MalformedMessage, match="Produce response v3: "):
        walk_produce_response(body, 3, 0, 100)
    with pytest.raises(MalformedMessage, match="Produce response v3: "):
        tail_with_endpoints(body, 3, 0)


@pytest.mark.parametrize("version", [3, 9])
def test_rejects_produce_response_topic_that_is_not_utf8(version: int) -> None:
    body = PRODUCE_RESPONSE.build({"responses": [{"name": "tt", "partition_responses": []}]}, version)

    with pytest.raises(MalformedMessage, match="UTF-8"):
        walk_produce_response(body.replace(b"tt", b"t\xff"), version, 0, 100)


@pytest.mark.parametrize("version", [8, 9])
def test_lone_surrogate_in_a_rejection_message_is_escaped(version: int) -> None:
    """A name in a client's schema may contain half a surrogate pair, and a message may quote the name."""
    rejection = PartitionRejection(ErrorCode.INVALID_RECORD, "name \ud800", (RecordError(0, "also \udfff"),))

    found = encode_rejection(0, rejection, version)

    assert rb"name \ud800" in found and rb"also \udfff" in found
