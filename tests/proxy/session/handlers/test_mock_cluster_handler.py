"""Clients of a mock cluster get an error with advice if they send a request that the cluster does not support."""

import struct
from dataclasses import replace

import pytest

from sluicegate.config.values.address import HostPort
from sluicegate.protocol.api import APIS
from sluicegate.protocol.headers import build_response_header, response_body_at
from sluicegate.protocol.messages.cluster import (
    DESCRIBE_CONFIGS_REQUEST,
    DESCRIBE_CONFIGS_RESPONSE,
    METADATA_RESPONSE,
)
from sluicegate.protocol.messages.handshake import API_VERSIONS_RESPONSE
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.responses.mock_cluster import REJECTED_APIS, MockClusterRewriter
from sluicegate.proxy.responses.topic_names import TopicNames
from tests.bounds.frames import sized_request
from tests.proxy.session.handlers.test_topic_change_handler import KEYS, frame_of, response_in
from tests.proxy.session.playbook import Playbook
from tests.wire.topic_changes import REQUESTS, codes_in

ADVICE = "use --upstream"
UNSUPPORTED_VERSION = 35
HEARTBEATS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat")
CHANGES = [api for api in REJECTED_APIS if api.name not in ("DescribeConfigs", *HEARTBEATS)]
VERSIONS = [(api.name, version) for api in CHANGES for version in range(api.max_version + 1)]
# A part of the list of APIs that librdkafka's mock cluster (2.16.0) supports.
MOCK_APIS = {0: (0, 10), 1: (0, 16), 3: (0, 13), 9: (0, 6), 11: (0, 6), 18: (0, 2), 22: (0, 4), 24: (0, 1), 68: (1, 1)}
TELEMETRY = {71: (0, 0), 72: (0, 0)}


def mock_cluster() -> Playbook:
    return Playbook(change=lambda given: replace(given, requests=replace(given.requests, mock_advice=ADVICE)))


def versions_response(version: int, error: int = 0) -> bytes:
    offered = MOCK_APIS | TELEMETRY
    keys = [{"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in offered.items()]
    body = API_VERSIONS_RESPONSE.build({"error_code": error, "api_keys": keys}, version)
    frame = build_response_header(7, 0) + body
    return struct.pack(">i", len(frame)) + frame


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_topic_changes_are_rejected_with_advice(name: str, version: int) -> None:
    play = mock_cluster()

    play.from_client(frame_of(name, version, REQUESTS[name]("orders")))

    assert play.broker.sent == b""
    assert set(filter(None, codes_in(response_in(play, name, version)))) == {UNSUPPORTED_VERSION}


def test_error_message_of_a_rejected_request_contains_the_advice() -> None:
    play = mock_cluster()

    play.from_client(frame_of("CreateTopics", 7, REQUESTS["CreateTopics"]("orders")))

    (topic,) = response_in(play, "CreateTopics", 7)["topics"]
    assert (topic["name"], topic["error_message"]) == ("orders", ADVICE)


@pytest.mark.parametrize("version", range(APIS[32].max_version + 1))
def test_describe_configs_is_rejected_with_advice(version: int) -> None:
    play = mock_cluster()
    asked = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        for kind, name in ((2, "t"), (4, "1"))
    ]

    body = DESCRIBE_CONFIGS_REQUEST.build({"resources": asked}, version)
    play.from_client(sized_request(32, version, body, correlation_id=7))

    frame = bytes(play.client.sent[4:])
    body = frame[response_body_at(frame, APIS[32].response_header_version(version)) :]
    results = DESCRIBE_CONFIGS_RESPONSE.parse(body, version)["results"]
    assert [(each["error_code"], each["error_message"], each["resource_name"]) for each in results] == [
        (UNSUPPORTED_VERSION, ADVICE, "t"),
        (UNSUPPORTED_VERSION, ADVICE, "1"),
    ]
    assert play.broker.sent == b""


@pytest.mark.parametrize("key", [68, 76])
def test_consumer_and_share_group_heartbeats_are_rejected(key: int) -> None:
    """Java's would end the process of the mock cluster. Clients read the response in test_sandbox_clients.py."""
    play, other = mock_cluster(), Playbook()
    frame = sized_request(key, 1, b"", correlation_id=7)

    play.from_client(frame)
    other.from_client(frame)

    response = bytes(play.client.sent)
    assert response[:15] == struct.pack(">iibih", len(response) - 4, 7, 0, 0, UNSUPPORTED_VERSION)
    assert ADVICE.encode() in response
    assert play.broker.sent == b""
    assert other.broker.sent == frame


def test_add_partitions_to_txn_is_forwarded_to_the_mock_cluster() -> None:
    play = mock_cluster()
    frame = frame_of("AddPartitionsToTxn", 1, REQUESTS["AddPartitionsToTxn"]("orders"))

    play.from_client(frame)

    assert play.broker.sent == frame


def test_api_versions_response_lists_the_rejected_apis() -> None:
    play = mock_cluster()
    play.from_client(sized_request(18, 2, b"", correlation_id=7))

    play.from_broker(versions_response(2))

    body = bytes(play.client.sent[8:])
    listed = {each["api_key"]: each["max_version"] for each in API_VERSIONS_RESPONSE.parse(body, 2)["api_keys"]}
    assert listed.items() >= {api.key: api.max_version for api in REJECTED_APIS}.items()
    assert listed.keys() == set(MOCK_APIS) | {api.key for api in REJECTED_APIS}
    assert (listed[0], listed[1]) == (10, APIS[1].max_version)


def test_api_versions_response_lists_only_working_versions_of_the_mock_cluster() -> None:
    play = mock_cluster()
    play.from_client(sized_request(18, 2, b"", correlation_id=7))

    play.from_broker(versions_response(2))

    value = API_VERSIONS_RESPONSE.parse(bytes(play.client.sent[8:]), 2)
    listed = {each["api_key"]: each["max_version"] for each in value["api_keys"]}
    assert (listed[3], listed[9], listed[11], listed[22]) == (8, 1, 5, 4)


def test_unsupported_version_error_for_api_versions_is_forwarded_unchanged() -> None:
    plays = mock_cluster(), Playbook()
    for play in plays:
        play.from_client(sized_request(18, 3, b"\x02a\x02b\0", correlation_id=7))
        play.from_broker(versions_response(0, UNSUPPORTED_VERSION))

    with_advice, without = plays
    assert with_advice.client.sent == without.client.sent != b""


def test_each_rejected_topic_change_api_has_a_guard_test() -> None:
    assert {api.name for api in CHANGES} <= set(REQUESTS)
    assert len(CHANGES) == 6
    assert all(KEYS[api.name] == api.key for api in REJECTED_APIS)


@pytest.mark.parametrize("version", range(1, 14))
@pytest.mark.parametrize("node_ids", [[1], [7, 3], []])
def test_metadata_response_names_the_first_broker_as_controller(node_ids: list[int], version: int) -> None:
    """The mock cluster names node 0, which no client can find."""
    brokers = [{"node_id": node_id, "host": "h", "port": 9, "rack": "r" * node_id} for node_id in node_ids]
    value = {"brokers": brokers, "cluster_id": "c", "controller_id": 0, "topics": [], "error_code": 0}
    frame = bytearray(build_response_header(7, APIS[3].response_header_version(version)))
    frame += METADATA_RESPONSE.build(value, version)

    (rewritten, *more) = MockClusterRewriter(AddressBook({}, lambda _: HostPort("p", 1)), TopicNames()).rewrite(
        3, version, frame
    )

    whole = b"".join(map(bytes, (rewritten, *more)))
    body = whole[response_body_at(whole, APIS[3].response_header_version(version)) :]
    assert METADATA_RESPONSE.parse(body, version)["controller_id"] == next(iter(node_ids), 0)
