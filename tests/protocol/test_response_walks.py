"""Compares topics found in Metadata responses with the schema."""

import pytest

from sluicegate.protocol.api import APIS
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from sluicegate.protocol.messages.schema import Value
from sluicegate.protocol.response_walks import code_at, codes_in, topics_in
from tests.oracle.definitions import RandomMessage, definition, versions
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.cost import cost

NO_ID = bytes(16)


@pytest.mark.parametrize("version", METADATA_REQUEST.versions)
@pytest.mark.parametrize("seed", range(20))
def test_it_finds_what_the_schema_finds(version: int, seed: int) -> None:
    value = RandomMessage(KAFKA_NEW, "MetadataResponse", version, seed).ours
    for topic in value["topics"][:1]:
        topic["error_code"] = 0
    body = METADATA_RESPONSE.build(value, version)

    found = topics_in(body, version, 0)

    existing = [topic for topic in value["topics"] if topic["error_code"] == 0 and topic["name"]]
    assert found == [(None if (i := t.get("topic_id", NO_ID)) == NO_ID else i, t["name"]) for t in existing]


def answer(topics: list[Value], version: int) -> bytes:
    return METADATA_RESPONSE.build({"brokers": [], "topics": topics}, version)


def test_a_missing_topic_is_omitted() -> None:
    topics = [{"error_code": code, "name": f"t{code}", "partitions": []} for code in (0, 3, 29)]

    assert topics_in(answer(topics, 9), 9, 0) == [(None, "t0")]


@pytest.mark.parametrize("version", METADATA_REQUEST.versions)
def test_a_cut_answer_is_malformed(version: int) -> None:
    partition = {"error_code": 0, "partition_index": 0, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}
    topic = {"error_code": 0, "name": "t", "partitions": [partition]}
    body = answer([topic], version)
    behind_topics = 0 if version < 8 else 4 if version == 8 else 1 + 4 * (version in (9, 10)) + 2 * (version >= 13)

    for cut in range(len(body) - behind_topics):
        with pytest.raises(MalformedMessage):
            topics_in(body[:cut], version, 0)


def test_a_name_that_is_not_utf8_is_malformed() -> None:
    body = answer([{"error_code": 0, "name": "tt", "partitions": []}], 9).replace(b"tt", b"t\xff")

    with pytest.raises(MalformedMessage, match="UTF-8"):
        topics_in(body, 9, 0)


@pytest.mark.parametrize("version", [0, 9, 12])
def test_many_empty_topics_cost_little(version: int) -> None:
    topic = {"error_code": 3, "name": "", "partitions": []}
    few, many = (answer([topic] * count, version) for count in (100, 9000))

    assert cost(lambda: topics_in(many, version, 0)) < 400 * cost(lambda: topics_in(few, version, 0))


def test_tagged_fields_without_end_are_rejected_by_their_count() -> None:
    body = answer([{"error_code": 0, "name": "t", "partitions": []}], 12)
    topic_tags = body.index(b"\x02t") + 2 + 16 + 1 + 1 + 4
    flood = body[:topic_tags] + b"\xa0\x8d\x06" + b"\0\0" * 100_000 + body[topic_tags + 1 :]

    with pytest.raises(MalformedMessage, match="100000 more tagged fields"):
        topics_in(flood, 12, 0)


def place_of_code(api: str, version: int) -> int | None:
    """Return the position by Kafka's definition: only the throttle time may precede it."""
    fields = [
        field["name"]
        for field in definition(KAFKA_NEW, f"{api}Response")["fields"]
        if version in versions(field["versions"])
    ]
    places = {("ErrorCode",): 0, ("ThrottleTimeMs", "ErrorCode"): 4}
    return next((at for names, at in places.items() if tuple(fields[: len(names)]) == names), None)


@pytest.mark.parametrize("key", APIS)
def test_the_error_code_is_at_kafkas_position(key: int) -> None:
    api = APIS[key]
    known = versions(definition(KAFKA_NEW, f"{api.name}Response")["validVersions"])

    for version in range(api.max_version + 1):
        if version in known:
            assert code_at(key, version) == place_of_code(api.name, version), f"v{version}"


@pytest.mark.parametrize(("key", "version"), [(3, 12), (1, 6), (10, 4), (24, 3), (999, 0)])
def test_others_have_none(key: int, version: int) -> None:
    assert code_at(key, version) is None
    assert codes_in(key, version, bytes(50), 4) == ()


def test_a_produce_answer_has_one_for_each_partition() -> None:
    partition = {"base_offset": 0, "log_append_time_ms": -1, "log_start_offset": -1}
    responses = [
        {
            "name": "t",
            "partition_responses": [partition | {"index": i, "error_code": code} for i, code in enumerate(codes)],
        }
        for codes in ((0, 32), (0, 87))
    ]
    body = PRODUCE_RESPONSE.build({"responses": responses, "throttle_time_ms": 0}, 7)

    assert codes_in(0, 7, b"\0\0\0\1" + body, 4) == (0, 32, 87)
    assert codes_in(0, 7, (b"\0\0\0\1" + body)[:-9], 4) == ()


def test_a_cut_answer_has_none() -> None:
    assert codes_in(12, 4, bytes(9), 5) == ()
