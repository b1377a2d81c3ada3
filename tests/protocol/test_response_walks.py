"""Topics and error codes that are found in responses agree with the schema."""

from datetime import timedelta
from importlib import import_module
from io import BytesIO
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

from sluicegate.protocol.api import APIS
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE
from sluicegate.protocol.messages.fetch import LIST_OFFSETS_RESPONSE
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from sluicegate.protocol.messages.schema import MessageSchema, Value
from sluicegate.protocol.response_walks import code_at, codes_in, topics_in
from tests.oracle.definitions import RandomMessage, message_definition, parse_versions
from tests.oracle.kafka_java import KAFKA_NEWEST
from tests.protocol.messages.test_against_kafka import release_of
from tests.wire.cost import cpu_seconds_of_call
from tests.wire.fetch_response import FETCH_RESPONSE
from tests.wire.unparsed_messages import TXN_OFFSET_COMMIT_RESPONSE

NO_ID = bytes(16)


@pytest.mark.parametrize("version", METADATA_REQUEST.versions)
@pytest.mark.parametrize("seed", range(20))
def test_topics_of_metadata_responses_equal_those_of_the_schema(version: int, seed: int) -> None:
    value = RandomMessage(KAFKA_NEWEST, "MetadataResponse", version, seed).ours
    for topic in value["topics"][:1]:
        topic["error_code"] = 0
    body = METADATA_RESPONSE.build(value, version)

    found, _ = topics_in(body, version, 0)

    existing = [topic for topic in value["topics"] if topic["error_code"] == 0 and topic["name"]]
    assert found == [(None if (i := t.get("topic_id", NO_ID)) == NO_ID else i, t["name"]) for t in existing]


def metadata_response(topics: list[Value], version: int) -> bytes:
    return METADATA_RESPONSE.build({"brokers": [], "topics": topics}, version)


def test_topics_in_metadata_omits_topics_with_an_error() -> None:
    topics = [{"error_code": code, "name": f"t{code}", "partitions": []} for code in (0, 3, 29)]

    assert topics_in(metadata_response(topics, 9), 9, 0)[0] == [(None, "t0")]


@pytest.mark.parametrize("version", METADATA_REQUEST.versions)
def test_a_truncated_metadata_response_is_malformed(version: int) -> None:
    partition = {"error_code": 0, "partition_index": 0, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}
    topic = {"error_code": 0, "name": "t", "partitions": [partition]}
    body = metadata_response([topic], version)
    behind_topics = 0 if version < 8 else 4 if version == 8 else 1 + 4 * (version in (9, 10)) + 2 * (version >= 13)

    for cut in range(len(body) - behind_topics):
        with pytest.raises(MalformedMessage):
            topics_in(body[:cut], version, 0)


def test_rejects_metadata_topic_name_that_is_not_utf8() -> None:
    body = metadata_response([{"error_code": 0, "name": "tt", "partitions": []}], 9).replace(b"tt", b"t\xff")

    with pytest.raises(MalformedMessage, match="UTF-8"):
        topics_in(body, 9, 0)


@pytest.mark.parametrize("version", [0, 9, 12])
def test_metadata_with_many_empty_topics_is_read_in_linear_time(version: int) -> None:
    topic = {"error_code": 3, "name": "", "partitions": []}
    few, many = (metadata_response([topic] * count, version) for count in (100, 9000))

    assert cpu_seconds_of_call(lambda: topics_in(many, version, 0)) < 400 * cpu_seconds_of_call(
        lambda: topics_in(few, version, 0)
    )


def test_rejects_excessive_tagged_fields_in_metadata_response() -> None:
    body = metadata_response([{"error_code": 0, "name": "t", "partitions": []}], 12)
    topic_tags = body.index(b"\x02t") + 2 + 16 + 1 + 1 + 4
    flood = body[:topic_tags] + b"\xa0\x8d\x06" + b"\0\0" * 100_000 + body[topic_tags + 1 :]

    with pytest.raises(MalformedMessage, match="100000 more tagged fields"):
        topics_in(flood, 12, 0)


def place_of_code(api: str, version: int) -> int | None:
    """Return the position by Kafka's definition: only the throttle time may precede it."""
    fields = [
        field["name"]
        for field in message_definition(KAFKA_NEWEST, f"{api}Response")["fields"]
        if version in parse_versions(field["versions"])
    ]
    places = {("ErrorCode",): 0, ("ThrottleTimeMs", "ErrorCode"): 4}
    return next((at for names, at in places.items() if tuple(fields[: len(names)]) == names), None)


@pytest.mark.parametrize("key", APIS)
def test_top_level_error_code_is_at_kafkas_position(key: int) -> None:
    api = APIS[key]
    known = parse_versions(message_definition(KAFKA_NEWEST, f"{api.name}Response")["validVersions"])

    for version in range(api.max_version + 1):
        if version in known:
            assert code_at(key, version) == place_of_code(api.name, version), f"v{version}"


@pytest.mark.parametrize(("key", "version"), [(3, 12), (1, 6), (10, 4), (24, 3), (999, 0)])
def test_code_at_returns_none_for_apis_without_top_level_error_code(key: int, version: int) -> None:
    assert code_at(key, version) is None


def codes_of(value: Any) -> set[int]:
    """Return all error codes in a message."""
    if isinstance(value, list):
        return set().union(*map(codes_of, value))
    if not isinstance(value, dict):
        return set()
    own = {value["error_code"]} if "error_code" in value else set()
    return own.union(*map(codes_of, value.values()))


SCHEMAS = (PRODUCE_RESPONSE, FETCH_RESPONSE, LIST_OFFSETS_RESPONSE, TXN_OFFSET_COMMIT_RESPONSE)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_collects_all_partition_error_codes_of_a_response(schema: MessageSchema) -> None:
    key = next(api.key for api in APIS.values() if f"{api.name}Response" == schema.name)
    found_some = False
    for version, seed in product(schema.versions, range(6)):
        if version > APIS[key].max_version:
            continue
        value = RandomMessage(release_of(schema.name, version), schema.name, version, seed).ours
        body = schema.build(value, version)
        codes = codes_of(value) - {0}

        assert set(codes_in(key, version, body, 0)) == (codes or {0}), f"v{version}, seed {seed}"
        for cut in range(0, len(body), 7):
            assert set(codes_in(key, version, body[:cut], 0)) <= codes | {0}
        found_some = found_some or len(codes) > 1
    assert found_some


@pytest.mark.parametrize("version", range(2, 11))
def test_collects_error_codes_of_kio_offset_commit_responses(version: int) -> None:
    module = import_module(f"kio.schema.offset_commit.v{version}.response")
    partitions = tuple(
        module.OffsetCommitResponsePartition(partition_index=i, error_code=ErrorCode(code))
        for i, code in enumerate((0, 30, 22, 30))
    )
    name = {"topic_id": UUID(int=7)} if version >= 10 else {"name": "orders"}
    throttle = {"throttle_time": timedelta(milliseconds=5)} if version >= 3 else {}
    topics = (module.OffsetCommitResponseTopic(partitions=partitions, **name),)
    written = BytesIO()
    entity_writer(module.OffsetCommitResponse)(written, module.OffsetCommitResponse(topics=topics, **throttle))

    assert codes_in(8, version, written.getvalue(), 0) == (22, 30)


def test_codes_in_returns_nothing_for_a_truncated_response() -> None:
    assert codes_in(12, 4, bytes(9), 5) == ()
