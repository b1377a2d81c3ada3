"""Responses with addresses are rewritten; all others stay unchanged."""

from typing import Any

import pytest

from sluicegate.config.values.address import HostPort
from sluicegate.protocol.api import APIS, Api, ApiKey
from sluicegate.protocol.api import rewritten as rewritten_api
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import build_response_header, response_body_at
from sluicegate.protocol.layout import ADDRESS, INT16, INT32, STRING, nodes, since
from sluicegate.protocol.messages import schema as schema_types
from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE
from sluicegate.protocol.messages.handshake import API_VERSIONS_RESPONSE
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from sluicegate.protocol.messages.schema import NODE_ENDPOINTS, Field, MessageSchema, Value
from sluicegate.protocol.produce_response import walk_produce_response
from sluicegate.proxy.responses.api_versions import cut_down_versions, unsupported_api_versions
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.responses.rewriting import ResponseRewriter
from sluicegate.proxy.responses.topic_names import TopicNames
from tests.oracle.definitions import RandomMessage
from tests.oracle.kafka_java import KAFKA_NEW
from tests.protocol.messages.test_against_kafka import message_schemas, release_of
from tests.wire.share_messages import SHARE_ACKNOWLEDGE_RESPONSE, SHARE_FETCH_RESPONSE
from tests.wire.unparsed_messages import (
    API_VERSIONS_REQUEST,
    DESCRIBE_CLUSTER_REQUEST,
    DESCRIBE_CLUSTER_RESPONSE,
    FIND_COORDINATOR_REQUEST,
    FIND_COORDINATOR_RESPONSE,
)

UPSTREAM_PORT = 9092
OURS = {1: HostPort("proxy", 19101), 2: HostPort("proxy", 19102)}
NOT_OFFERED = 3
BROKERS = [
    {"node_id": node, "host": f"upstream-{node}", "port": UPSTREAM_PORT, "rack": None} for node in (1, 2, NOT_OFFERED)
]
REWRITTEN = [{"node_id": node, "host": "proxy", "port": 19100 + node, "rack": None} for node in (1, 2)]


@pytest.fixture
def address_book() -> AddressBook:
    return AddressBook({}, OURS.get)


@pytest.fixture
def rewriter(address_book: AddressBook) -> ResponseRewriter:
    return ResponseRewriter(address_book, TopicNames())


def rewrite_response(
    rewriter: ResponseRewriter, key: ApiKey, schema: MessageSchema, value: Value, version: int
) -> Value:
    header = build_response_header(7, APIS[key].response_header_version(version))
    frame = b"".join(rewriter.rewrite(key, version, bytearray(header + schema.build(value, version))))
    assert frame.startswith(header)
    assert b"upstream" not in frame
    return schema.parse(frame[len(header) :], version)


@pytest.mark.parametrize("version", METADATA_REQUEST.versions)
def test_metadata_responses_advertise_the_proxys_addresses(
    version: int, rewriter: ResponseRewriter, address_book: AddressBook
) -> None:
    rest = RandomMessage(KAFKA_NEW, "MetadataResponse", version, 3).ours
    brokers = [{k: v for k, v in b.items() if k != "rack" or version >= 1} for b in BROKERS]

    found = rewrite_response(rewriter, ApiKey.METADATA, METADATA_RESPONSE, {**rest, "brokers": brokers}, version)

    assert [(b["node_id"], b["host"], b["port"]) for b in found["brokers"]] == [
        (b["node_id"], b["host"], b["port"]) for b in REWRITTEN
    ]
    assert METADATA_RESPONSE.build({**found, "brokers": []}, version) == METADATA_RESPONSE.build(
        {**rest, "brokers": []}, version
    )
    assert address_book.upstream_of(NOT_OFFERED) == HostPort("upstream-3", UPSTREAM_PORT)


@pytest.mark.parametrize("version", FIND_COORDINATOR_REQUEST.versions)
@pytest.mark.parametrize(("node", "host", "port", "error"), [(1, "proxy", 19101, 0), (NOT_OFFERED, "", -1, 15)])
def test_find_coordinator_responses_advertise_the_proxys_addresses(
    version: int, node: int, host: str, port: int, error: int, rewriter: ResponseRewriter
) -> None:
    told: dict[str, Any] = {"error_code": 0, "node_id": node, "host": f"upstream-{node}", "port": UPSTREAM_PORT}
    value: Value = {"coordinators": [{"key": "g", "error_message": None, **told}]} if version >= 4 else told

    found = rewrite_response(rewriter, ApiKey.FIND_COORDINATOR, FIND_COORDINATOR_RESPONSE, value, version)

    coordinator = found["coordinators"][0] if version >= 4 else found
    assert (coordinator["host"], coordinator["port"], coordinator["error_code"]) == (host, port, error)


def test_a_missing_coordinator_is_forwarded_unchanged(rewriter: ResponseRewriter) -> None:
    none = {"error_code": 15, "node_id": -1, "host": "", "port": -1}
    found = rewrite_response(rewriter, ApiKey.FIND_COORDINATOR, FIND_COORDINATOR_RESPONSE, none, 2)
    assert {name: found[name] for name in none} == none


@pytest.mark.parametrize("version", DESCRIBE_CLUSTER_REQUEST.versions)
def test_describe_cluster_responses_advertise_the_proxys_addresses(version: int, rewriter: ResponseRewriter) -> None:
    brokers = [{"broker_id": b["node_id"], **{k: v for k, v in b.items() if k != "node_id"}} for b in BROKERS]
    value = {"throttle_time_ms": 0, "error_code": 0, "cluster_id": "c", "brokers": brokers}

    found = rewrite_response(rewriter, ApiKey.DESCRIBE_CLUSTER, DESCRIBE_CLUSTER_RESPONSE, value, version)

    assert [(b["broker_id"], b["host"], b["port"]) for b in found["brokers"]] == [
        (1, "proxy", 19101),
        (2, "proxy", 19102),
    ]


@pytest.mark.parametrize(
    ("key", "schema"),
    [(ApiKey.SHARE_FETCH, SHARE_FETCH_RESPONSE), (ApiKey.SHARE_ACKNOWLEDGE, SHARE_ACKNOWLEDGE_RESPONSE)],
)
@pytest.mark.parametrize("version", [1, 2])
def test_share_responses_advertise_the_proxys_addresses(
    key: ApiKey, schema: MessageSchema, version: int, rewriter: ResponseRewriter
) -> None:
    value = RandomMessage(KAFKA_NEW, schema.name, version, 2).ours | {"node_endpoints": BROKERS}

    found = rewrite_response(rewriter, key, schema, value, version)

    assert found["node_endpoints"] == REWRITTEN


@pytest.mark.parametrize("version", range(10, 14))
def test_the_node_endpoints_of_a_produce_response_are_rewritten(version: int, rewriter: ResponseRewriter) -> None:
    body = PRODUCE_RESPONSE.build({"responses": [], "throttle_time_ms": 5, "node_endpoints": BROKERS}, version)
    walked = walk_produce_response(body, version, 0, 100)
    assert walked.has_node_endpoints

    tail = rewriter.produce_tail(walked.tail, None)

    found = PRODUCE_RESPONSE.parse(body[: len(body) - len(walked.tail)] + tail, version)
    assert (found["throttle_time_ms"], found["node_endpoints"]) == (5, REWRITTEN)


def versions_response(version: int, *keys: tuple[int, int, int]) -> bytearray:
    offered = [{"api_key": k, "min_version": low, "max_version": high} for k, low, high in keys]
    body = API_VERSIONS_RESPONSE.build({"error_code": 0, "api_keys": offered}, version)
    return bytearray(build_response_header(1, 0) + body)


@pytest.mark.parametrize("version", API_VERSIONS_REQUEST.versions)
def test_api_versions_are_limited_to_those_that_the_proxy_supports(version: int) -> None:
    frame = versions_response(version, (0, 0, 99), (1, 4, 18), (18, 0, 4), (12345, 0, 1), (2, 50, 60), (3, 0, 5))

    found = API_VERSIONS_RESPONSE.parse(b"".join(cut_down_versions(version, frame))[4:], version)

    assert [(k["api_key"], k["min_version"], k["max_version"]) for k in found["api_keys"]] == [
        (0, 0, 13),  # Produce keeps the minimum version that the broker advertises
        (1, 4, 15),
        (18, 0, 4),
        (3, 0, 5),
    ]


def test_unsupported_version_response_is_parsed_as_version_0() -> None:
    frame = bytearray(unsupported_api_versions(9, max_version=3))

    assert b"".join(cut_down_versions(4, frame)) == bytes(frame)
    assert response_body_at(frame, 0) == 4


def test_malformed_unsupported_version_response_is_replaced() -> None:
    """The layout of librdkafka's mock cluster (seen with 2.16)."""
    mock = bytearray.fromhex("0000000100230100120000000200000000")

    assert b"".join(cut_down_versions(3, mock)) == unsupported_api_versions(1, max_version=0)


@pytest.mark.parametrize("version", METADATA_REQUEST.versions)
def test_topic_names_are_learned_from_metadata_response(version: int, address_book: AddressBook) -> None:
    names = TopicNames()
    topics = [{"error_code": code, "name": name, "partitions": []} for code, name in ((0, "there"), (3, "invented"))]
    value = {"brokers": [], "topics": topics}

    rewrite_response(ResponseRewriter(address_book, names), ApiKey.METADATA, METADATA_RESPONSE, value, version)

    assert names.is_known("there")
    assert not names.is_known("invented")


@pytest.mark.parametrize(("host", "port"), [("a..b", 9092), ("", 9092), ("upstream\n1", 9092), ("upstream-1", 0)])
def test_a_broker_with_an_invalid_address_is_left_out_of_responses(
    host: str, port: int, rewriter: ResponseRewriter, address_book: AddressBook
) -> None:
    broken = [{"node_id": 1, "host": host, "port": port, "rack": None}, BROKERS[1]]
    coordinator = {"error_code": 0, "error_message": None, "key": "g", **broken[0]}
    coordinator.pop("rack")
    value = RandomMessage(KAFKA_NEW, "ShareFetchResponse", 1, 2).ours | {"node_endpoints": broken}

    told = rewrite_response(rewriter, ApiKey.METADATA, METADATA_RESPONSE, {"brokers": broken, "topics": []}, 12)
    shared = rewrite_response(rewriter, ApiKey.SHARE_FETCH, SHARE_FETCH_RESPONSE, value, 1)
    found = rewrite_response(
        rewriter, ApiKey.FIND_COORDINATOR, FIND_COORDINATOR_RESPONSE, {"coordinators": [coordinator]}, 4
    )["coordinators"][0]

    assert told["brokers"] == shared["node_endpoints"] == REWRITTEN[1:]
    assert (found["node_id"], found["host"], found["port"], found["error_code"]) == (-1, "", -1, 15)
    assert address_book.node_ids == [2]


def test_the_address_of_a_coordinator_without_a_node_is_removed(rewriter: ResponseRewriter) -> None:
    odd = {"error_code": 0, "node_id": -1, "host": "upstream-1", "port": UPSTREAM_PORT}
    found = rewrite_response(rewriter, ApiKey.FIND_COORDINATOR, FIND_COORDINATOR_RESPONSE, odd, 2)

    assert (found["host"], found["port"]) == ("", -1)


@pytest.mark.parametrize("version", FIND_COORDINATOR_REQUEST.versions)
def test_rewriting_changes_only_the_address_of_a_coordinator(version: int, rewriter: ResponseRewriter) -> None:
    for seed in range(20):
        value = RandomMessage(
            release_of("FindCoordinatorResponse", version), "FindCoordinatorResponse", version, seed
        ).ours
        for told in value["coordinators"] if version >= 4 else [value]:
            told.update(node_id=2, host="upstream-2", port=UPSTREAM_PORT)

        found = rewrite_response(rewriter, ApiKey.FIND_COORDINATOR, FIND_COORDINATOR_RESPONSE, value, version)

        for told in value["coordinators"] if version >= 4 else [value]:
            told.update(host="proxy", port=19102)
        assert FIND_COORDINATOR_RESPONSE.build(found, version) == FIND_COORDINATOR_RESPONSE.build(value, version)


def test_responses_without_addresses_are_forwarded_unchanged(rewriter: ResponseRewriter) -> None:
    body = SHARE_FETCH_RESPONSE.build(
        RandomMessage(KAFKA_NEW, "ShareFetchResponse", 1, 2).ours | {"node_endpoints": []}, 1
    )
    frame = bytearray(build_response_header(7, 1) + body)

    (passed,) = rewriter.rewrite(ApiKey.SHARE_FETCH, 1, frame)
    assert passed is frame


@pytest.mark.parametrize(
    ("key", "schema", "version", "field", "most"),
    [
        (ApiKey.METADATA, METADATA_RESPONSE, 12, "brokers", 2000),
        (ApiKey.DESCRIBE_CLUSTER, DESCRIBE_CLUSTER_RESPONSE, 2, "brokers", 2000),
        (ApiKey.FIND_COORDINATOR, FIND_COORDINATOR_RESPONSE, 4, "coordinators", 20_000),
        (ApiKey.SHARE_FETCH, SHARE_FETCH_RESPONSE, 2, "node_endpoints", 2000),
        (ApiKey.SHARE_ACKNOWLEDGE, SHARE_ACKNOWLEDGE_RESPONSE, 2, "node_endpoints", 2000),
    ],
)
def test_response_with_too_many_brokers_is_malformed(
    key: ApiKey, schema: MessageSchema, version: int, field: str, most: int, rewriter: ResponseRewriter
) -> None:
    entry = {
        "node_id": 1,
        "broker_id": 1,
        "host": "h",
        "port": 9092,
        "key": "g",
        "error_code": 0,
        "error_message": None,
    }
    kept = {spec.name for spec in next(f for f in schema.fields if f.name == field).kind.item.fields}
    entry = {name: value for name, value in entry.items() if name in kept}
    rest = RandomMessage(KAFKA_NEW, schema.name, version, 1).ours
    fits, flood = (
        bytearray(build_response_header(7, 1) + schema.build(rest | {field: [entry] * count}, version))
        for count in (most, most + 1)
    )

    assert rewriter.rewrite(key, version, fits)
    with pytest.raises(MalformedMessage, match=str(most + 1)):
        rewriter.rewrite(key, version, flood)


def test_rewriting_uses_no_construct_schema_and_caches_api_versions(
    rewriter: ResponseRewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = versions_response(3, (0, 0, 99), (1, 4, 18))
    first = b"".join(cut_down_versions(3, again))
    frames = [
        (key, version, bytearray(build_response_header(7, APIS[key].response_header_version(version)) + body))
        for key, name in ((3, "Metadata"), (10, "FindCoordinator"), (60, "DescribeCluster"), (78, "ShareFetch"))
        for version in (APIS[key].max_version,)
        for schema in (dict(message_schemas())[f"{name}Response"],)
        for body in (schema.build(RandomMessage(KAFKA_NEW, f"{name}Response", version, 1).ours, version),)
    ]
    monkeypatch.setattr(MessageSchema, "parse", None)
    monkeypatch.setattr(MessageSchema, "build", None)

    for key, version, frame in frames:
        assert rewriter.rewrite(key, version, frame)
    again[:4] = b"\0\0\0\x09"
    assert b"".join(cut_down_versions(3, again)) == b"\0\0\0\x09" + first[4:]


@pytest.mark.parametrize("key", [93, 128, 32_767])
def test_response_of_newly_declared_api_is_rewritten(
    key: int, rewriter: ResponseRewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = rewritten_api(Api(key, "ListLeaders", 1, 0), INT32, since(1, INT16), nodes(ADDRESS, STRING))
    monkeypatch.setitem(APIS, key, declared)
    schema = MessageSchema(
        "ListLeadersResponse",
        range(2),
        0,
        Field("throttle_time_ms", schema_types.INT32),
        Field("error_code", schema_types.INT16, since=1, default=0),
        Field("leaders", NODE_ENDPOINTS),
    )
    for version in range(2):
        value = {"throttle_time_ms": 9, "leaders": BROKERS}

        frame = bytearray(build_response_header(7, 1) + schema.build(value, version))
        found = schema.parse(b"".join(rewriter.rewrite(key, version, frame))[5:], version)

        assert (found["throttle_time_ms"], found["leaders"]) == (9, REWRITTEN)


def test_a_large_response_is_not_copied(rewriter: ResponseRewriter) -> None:
    body = METADATA_RESPONSE.build(
        RandomMessage(KAFKA_NEW, "MetadataResponse", 8, 1).ours | {"brokers": BROKERS[:2], "topics": []}, 8
    )
    frame = bytearray(build_response_header(7, 0) + body + bytes(1 << 20))

    parts = rewriter.rewrite(ApiKey.METADATA, 8, frame)

    assert b"".join(parts).endswith(bytes(1 << 20))
    assert all(isinstance(part, memoryview) and part.obj is frame for part in parts if len(part) > 100)


def test_oversized_responses_are_malformed(rewriter: ResponseRewriter) -> None:
    with pytest.raises(MalformedMessage, match="ApiVersions response v0: 1048580 bytes"):
        cut_down_versions(0, bytearray((1 << 20) + 4))
    with pytest.raises(MalformedMessage, match="node endpoints after its topics have 1048577 bytes"):
        rewriter.produce_tail(memoryview(bytes((1 << 20) + 1)), None)


def test_an_api_versions_response_with_too_many_versions_is_malformed() -> None:
    with pytest.raises(MalformedMessage):
        cut_down_versions(3, versions_response(3, *[(0, 0, 99)] * 5000))
