"""Errors that a broker sends are counted by API, name and client, on both paths; the responses stay unchanged."""

import struct
from collections import Counter
from threading import Lock

import pytest

from sluicegate.protocol.messages.cluster import METADATA_RESPONSE
from sluicegate.protocol.messages.fetch import LIST_OFFSETS_RESPONSE
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.proxy.reporting.metrics.broker_errors import BrokerErrorCounts
from sluicegate.proxy.reporting.metrics.counters import OTHER, Counters
from sluicegate.proxy.session.client.identity import ClientIdentity
from tests.bounds.frames import good_batch, sized_frame, sized_produce_request, sized_request
from tests.proxy.session.playbook import NOW, Playbook
from tests.wire.batches import Rec, batch
from tests.wire.fetch_response import FETCH_RESPONSE

_CLIENT = "billing"
_PATHS = pytest.mark.parametrize("has_fast_path", [True, False] if HAS_FAST_PATH else [False])
_TOPIC = {"name": "t", "topic_id": bytes(16), "is_internal": False, "partitions": [], "topic_authorized_operations": 0}
_METADATA = {"brokers": [], "cluster_id": None, "controller_id": -1, "throttle_time_ms": 0}
_CODES = struct.Struct(">h")


def body_of_metadata(*codes: int) -> bytes:
    topics = [_TOPIC | {"error_code": code} for code in codes]
    return METADATA_RESPONSE.build(_METADATA | {"topics": topics}, 12)


def body_of_produce(version: int, *codes: int) -> bytes:
    stored = {"base_offset": 0, "log_append_time_ms": -1, "log_start_offset": 0}
    partitions = [stored | {"index": index, "error_code": code} for index, code in enumerate(codes)]
    topics = [{"name": "t", "partition_responses": partitions}]
    return PRODUCE_RESPONSE.build({"responses": topics, "throttle_time_ms": 0}, version)


def body_of_fetch(version: int, *codes: int) -> bytes:
    positions = {"high_watermark": 9, "last_stable_offset": 9, "log_start_offset": 0, "preferred_read_replica": -1}
    partitions = [
        positions | {"partition_index": index, "error_code": code, "aborted_transactions": None, "records": b"r" * 99}
        for index, code in enumerate(codes)
    ]
    topics = [{"topic": "t", "partitions": partitions}]
    head = {"throttle_time_ms": 0, "error_code": 0, "session_id": 0}
    return FETCH_RESPONSE.build(head | {"responses": topics}, version)


def body_of_list_offsets(version: int, *codes: int) -> bytes:
    partitions = [
        {"partition_index": index, "error_code": code, "timestamp": -1, "offset": 0} for index, code in enumerate(codes)
    ]
    return LIST_OFFSETS_RESPONSE.build(
        {"throttle_time_ms": 0, "topics": [{"name": "t", "partitions": partitions}]}, version
    )


_MEMBER = b"\0\1g" + bytes(4) + b"\0\1m"
# API, version, request body, whether both headers are flexible, response body, and the errors in the response.
CASES = {
    "heartbeat": (12, 4, b"\2g" + bytes(4) + b"\2m\0\0", True, bytes(4) + _CODES.pack(27) + b"\0", [27]),
    "old-heartbeat": (12, 0, _MEMBER, False, _CODES.pack(30), [30]),
    "fetch-session": (1, 11, b"\xff" * 4 + bytes(34), False, bytes(4) + _CODES.pack(70) + bytes(8), [70]),
    "fetch": (1, 12, b"\xff" * 4 + bytes(30), True, body_of_fetch(12, 0, 29, 29, 3), [29, 3]),
    "list-offsets": (2, 2, b"\xff" * 4 + bytes(5), False, body_of_list_offsets(2, 0, 6), [6]),
    "offset-commit": (
        8,
        8,
        bytes(12),
        True,
        bytes(4) + b"\2\2t\3" + bytes(4) + _CODES.pack(30) + bytes(7) + b"\0\0",
        [30],
    ),
    "cut-fetch": (1, 4, b"\xff" * 4 + bytes(30), False, bytes(4) + b"\0\0\0\2" + bytes(3), []),
    "init-producer-id": (22, 1, b"\xff\xff" + bytes(4), False, bytes(4) + _CODES.pack(31) + bytes(10), [31]),
    "handshake": (17, 1, b"\0\3FOO", False, _CODES.pack(33) + b"\0\0\0\1\0\5PLAIN", [33]),
    "metadata": (3, 12, b"\1\1\0\0\0", True, body_of_metadata(0, 29, 3, 29), [29, 3]),
    "unknown-code": (12, 0, _MEMBER, False, _CODES.pack(999), [999]),
    "success": (12, 0, _MEMBER, False, _CODES.pack(0), []),
}
# The codes in Kafka's org.apache.kafka.common.protocol.Errors.
_NAMES = {
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    6: "NOT_LEADER_OR_FOLLOWER",
    27: "REBALANCE_IN_PROGRESS",
    29: "TOPIC_AUTHORIZATION_FAILED",
    30: "GROUP_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
    33: "UNSUPPORTED_SASL_MECHANISM",
    70: "FETCH_SESSION_ID_NOT_FOUND",
    999: OTHER,
}


def session_after_first_request(has_fast_path: bool) -> Playbook:
    """Return a session that knows its client's id."""
    play = Playbook(has_fast_path)
    play.from_client(sized_produce_request(9, {b"t": [(0, good_batch(NOW))]}, -1, 1, client_id=_CLIENT.encode()))
    play.from_broker(sized_frame(struct.pack(">i", 1) + b"\0" + body_of_produce(9, 0)))
    play.client.sent.clear()
    return play


@_PATHS
@pytest.mark.parametrize("case", CASES)
def test_each_error_code_is_counted_once_for_each_response(case: str, has_fast_path: bool) -> None:
    key, version, asked, is_flexible, responded, codes = CASES[case]
    play = session_after_first_request(has_fast_path)
    response = sized_frame(struct.pack(">i", 7) + (b"\0" if is_flexible else b"") + responded)

    play.from_client(sized_request(key, version, asked, 7, client_id=_CLIENT.encode()))
    play.from_broker(response)

    found = Counter({(error, client): count for (_, error, client), count in play.parts.counters.broker_errors.items()})
    assert found == Counter({(_NAMES[code], _CLIENT): 1 for code in codes})
    assert play.client.sent == response


@_PATHS
@pytest.mark.parametrize("version", [3, 8, 9, 10, 12])
def test_partition_errors_of_an_unchanged_produce_request_are_counted(version: int, has_fast_path: bool) -> None:
    play = session_after_first_request(has_fast_path)

    play.from_client(sized_produce_request(version, {b"t": [(0, good_batch(NOW)), (1, good_batch(NOW))]}, -1, 7))
    header = struct.pack(">i", 7) + (b"\0" if version >= 9 else b"")
    play.from_broker(sized_frame(header + body_of_produce(version, 0, 6)))

    assert play.parts.counters.broker_errors == {("Produce", "NOT_LEADER_OR_FOLLOWER", _of(play)): 1}


def test_only_broker_error_codes_of_a_merged_response_are_counted() -> None:
    """The broker returns errors for the stand-in of partition 1 and for the forwarded batch of partition 0."""
    play = Playbook(False, SLUICEGATE__DEFAULTS="{message.timestamp.before.max.ms: 1000}")

    play.from_client(sized_produce_request(3, {b"t": [(0, good_batch(NOW)), (1, batch([Rec(1)]))]}, -1, 7))
    play.from_broker(sized_frame(struct.pack(">i", 7) + body_of_produce(3, 29, 2)))

    assert play.parts.counters.broker_errors == {("Produce", "TOPIC_AUTHORIZATION_FAILED", _of(play)): 1}


def _of(play: Playbook) -> str:
    """Return the label of the client of the newest request."""
    return play.session.identity.client_id or "none"


def test_client_ids_beyond_the_limit_share_one_series_without_losing_counts() -> None:
    counters = Counters()
    errors = BrokerErrorCounts(counters, Lock(), lambda: NOW, max_kinds=5, max_clients=3)

    for number in range(1000):
        errors.broker_error(ClientIdentity(f"192.0.2.{number % 3}:5", f"client-{number}"), 12, number % 40)

    assert len(counters.broker_errors) <= 5 + 40
    assert counters.broker_errors.total() == 1000
    assert sum(each["responses"] for each in errors.state()) == 1000
    assert {each["last_ms"] for each in errors.state()} == {NOW}
