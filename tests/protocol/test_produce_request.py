"""The walk over Produce requests agrees with the construct schema."""

import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.errors import MalformedMessage, RequestTooLarge
from sluicegate.protocol.messages.produce import PRODUCE_REQUEST
from sluicegate.protocol.messages.schema import Value
from sluicegate.protocol.produce_request import ProduceRequest, walk_produce_request
from tests.wire.cost import cpu_seconds_of_call

HEADER = b"the header"
MANY = 10_000


@st.composite
def requests(draw: st.DrawFn) -> tuple[int, Value]:
    version = draw(st.sampled_from(PRODUCE_REQUEST.versions))
    names = st.text("abc.é", max_size=8)
    partitions = st.lists(
        st.fixed_dictionaries(
            {"index": st.integers(-(2**31), 2**31 - 1), "records": st.none() | st.binary(max_size=40)}
        ),
        max_size=4,
    )
    topic = {"partition_data": partitions}
    topic |= {"topic_id": st.binary(min_size=16, max_size=16)} if version >= 13 else {"name": names}
    value: Value = {
        "acks": draw(st.sampled_from((-1, 0, 1, 7))),
        "timeout_ms": draw(st.integers(0, 2**31 - 1)),
        "topic_data": draw(st.lists(st.fixed_dictionaries(topic), max_size=4)),
    }
    if version >= 3:
        value["transactional_id"] = draw(st.none() | names)
    if version >= 9 and draw(st.booleans()):
        value["unknown_tags"] = {5: b"from a later version"}
        for topic_value in value["topic_data"]:
            topic_value["unknown_tags"] = {1: b"x", 7: b""}
    return version, value


def walk_value(value: Value, version: int) -> ProduceRequest:
    frame = bytearray(HEADER + PRODUCE_REQUEST.build(value, version))
    return walk_produce_request(frame, version, len(HEADER), MANY)


@given(requests())
def test_produce_request_fields_equal_those_of_the_schema(case: tuple[int, Value]) -> None:
    version, value = case

    request = walk_value(value, version)

    assert request.acks == value["acks"]
    assert request.transactional_id == value.get("transactional_id")
    found = [
        {
            **({"topic_id": t.topic_id} if version >= 13 else {"name": t.name}),
            "partition_data": [
                {
                    "index": p.index,
                    "records": None if p.records_at < 0 else bytes(request.frame[p.records_at : p.records_end]),
                }
                for p in t.partitions
            ],
        }
        for t in request.topics
    ]
    assert found == [{k: v for k, v in topic.items() if k != "unknown_tags"} for topic in value["topic_data"]]


@given(requests(), st.randoms(use_true_random=False))
def test_replacing_records_of_partitions_leaves_the_rest_of_the_request_unchanged(
    case: tuple[int, Value], chance: random.Random
) -> None:
    version, value = case
    places = [(t, p) for t, topic in enumerate(value["topic_data"]) for p in range(len(topic["partition_data"]))]
    others = {place: bytes(chance.randrange(200)) for place in places if chance.random() < 0.5}

    changed = b"".join(walk_value(value, version).with_records(others))

    topics = [
        {**topic, "partition_data": [{**e, "records": others.get((t, p), e["records"])} for p, e in enumerate(entries)]}
        for t, topic in enumerate(value["topic_data"])
        for entries in [topic["partition_data"]]
    ]
    assert changed == HEADER + PRODUCE_REQUEST.build({**value, "topic_data": topics}, version)


@given(requests(), st.data())
def test_rejects_truncated_produce_request(case: tuple[int, Value], data: st.DataObject) -> None:
    version, value = case
    body = PRODUCE_REQUEST.build(value, version)
    cut = data.draw(st.integers(0, len(body) - 1))

    with pytest.raises(MalformedMessage):
        walk_produce_request(bytearray(HEADER + body[:cut]), version, len(HEADER), MANY)


@given(st.sampled_from(PRODUCE_REQUEST.versions), st.binary(max_size=100))
def test_random_bytes_are_parsed_or_reported_as_malformed(version: int, garbage: bytes) -> None:
    with suppress(MalformedMessage):
        walk_produce_request(bytearray(garbage), version, 0, MANY)


def request_of(topics: int, partitions: int, version: int) -> bytearray:
    """Return a request with null partitions, in as many topics."""
    entries = [{"index": n, "records": None} for n in range(partitions)]
    topic = {"topic_id": bytes(16)} if version >= 13 else {"name": "t"}
    value: Value = {"acks": -1, "timeout_ms": 1, "topic_data": [{**topic, "partition_data": entries}] * topics}
    if version >= 3:
        value["transactional_id"] = None
    return bytearray(PRODUCE_REQUEST.build(value, version))


@pytest.mark.parametrize("version", PRODUCE_REQUEST.versions)
@pytest.mark.parametrize(("topics", "partitions"), [(1, 99), (50, 1), (100, 0)])
def test_limits_the_number_of_topics_and_partitions_together(version: int, topics: int, partitions: int) -> None:
    frame = request_of(topics, partitions, version)

    assert len(walk_produce_request(frame, version, 0, 100).topics) == topics
    with pytest.raises(RequestTooLarge, match=r"limits\.max_request_partitions \(99\)"):
        walk_produce_request(frame, version, 0, 99)


@pytest.mark.parametrize("version", PRODUCE_REQUEST.versions)
def test_rejects_partition_count_above_the_limit_before_creating_partitions(version: int) -> None:
    few, flood = request_of(1, 100, version), request_of(1, 50_000, version)

    with pytest.raises(RequestTooLarge, match="50000 more topics or partitions than"):
        walk_produce_request(flood, version, 0, MANY)
    most = cpu_seconds_of_call(lambda: walk_produce_request(few, version, 0, MANY))
    assert cpu_seconds_of_call(lambda: walk_produce_request(flood, version, 0, MANY)) < 5 * most


def test_limits_the_total_bytes_of_topic_names_in_a_request() -> None:
    def request_with_names(count: int, size: int) -> bytearray:
        topics = [{"name": "a" * size, "partition_data": []}] * count
        body = {"acks": -1, "timeout_ms": 1, "topic_data": topics, "transactional_id": None}
        return bytearray(PRODUCE_REQUEST.build(body, 9))

    assert (
        len(walk_produce_request(request_with_names(1, 32_767), 9, 0, 1).topics[0].name or "") == 32_767
    )  # the broker rejects such a request
    assert len(walk_produce_request(request_with_names(100, 249), 9, 0, 100).topics) == 100
    with pytest.raises(RequestTooLarge, match=r"names take more bytes than limits\.max_request_partitions"):
        walk_produce_request(request_with_names(100, 32_000), 9, 0, 100)
    with pytest.raises(MalformedMessage, match="32768 bytes"):
        walk_produce_request(request_with_names(1, 32_768), 9, 0, 100)


def test_limits_tagged_fields_of_a_produce_request() -> None:
    topic = {"name": "t", "partition_data": [], "unknown_tags": dict.fromkeys(range(5001), b"")}
    value = {"acks": -1, "timeout_ms": 1, "topic_data": [topic, topic], "transactional_id": None}

    with pytest.raises(MalformedMessage, match="5001 more tagged fields than the 4999"):
        walk_produce_request(bytearray(PRODUCE_REQUEST.build(value, 9)), 9, 0, MANY)
