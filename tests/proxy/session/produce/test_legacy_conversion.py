"""Produce v0 to v2 requests are converted only with `listen.legacy: convert`; without it, nothing changes."""

from typing import Any

import pytest

from sluicegate.protocol.headers import build_request_header, build_response_header
from sluicegate.protocol.messages.handshake import API_VERSIONS_RESPONSE
from sluicegate.protocol.messages.produce import PRODUCE_REQUEST, PRODUCE_RESPONSE
from tests.bounds.frames import sized_frame
from tests.proxy.session.playbook import NOW, Playbook
from tests.wire.batches import Rec, batch, message
from tests.wire.raw_client import produce_body, topic_data

PRODUCE, API_VERSIONS = 0, 18
GOOD = message(1, b"v", timestamp=NOW)
CORRUPT = message(1, b"v", timestamp=NOW, crc=5)
OLD_VERSIONS = (0, 1, 2)


def old_request(version: int, *records: bytes, acks: int = 1) -> bytes:
    body = produce_body(version, [topic_data("orders", *enumerate(records))], acks)
    return sized_frame(build_request_header(PRODUCE, version, 7, "old", 1) + body)


def response_of_broker(*codes: int) -> bytes:
    entries = [
        {"index": index, "error_code": code, "base_offset": -1 if code else 41, "log_append_time_ms": -1}
        for index, code in enumerate(codes)
    ]
    value = {"responses": [{"name": "orders", "partition_responses": entries}], "throttle_time_ms": 0}
    return sized_frame(build_response_header(7, 0) + PRODUCE_RESPONSE.build(value, 3))


def converting(**environment: str) -> Playbook:
    return Playbook(SLUICEGATE__LISTEN__LEGACY="convert", **environment)


def forwarded(play: Playbook) -> Any:
    play.loop.until(lambda: bool(play.broker.sent))
    sent = bytes(play.broker.sent)
    header = build_request_header(PRODUCE, 3, 7, "old", 1)
    assert sent[4:].startswith(header)
    return PRODUCE_REQUEST.parse(sent[4 + len(header) :], 3)


def entries_for_client(play: Playbook, version: int) -> list[tuple[int, int]]:
    value = PRODUCE_RESPONSE.parse(bytes(play.client.sent[8:]), version)
    assert play.client.sent[4:8] == b"\0\0\0\7"
    (topic,) = value["responses"]
    return [(each["error_code"], each["base_offset"]) for each in topic["partition_responses"]]


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_legacy_request_is_upgraded_to_v3_and_its_response_downgraded(version: int) -> None:
    play = converting()
    play.from_client(old_request(version, GOOD))

    (topic,) = forwarded(play)["topic_data"]
    play.from_broker(response_of_broker(0))

    (partition,) = topic["partition_data"]
    assert partition["records"] == batch([Rec(NOW)])
    assert entries_for_client(play, version) == [(0, 41)]
    assert play.parts.counters.converted_requests == {("old", f"v{version}"): 1}


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_rejection_is_merged_into_the_legacy_response(version: int) -> None:
    play = converting()
    play.from_client(old_request(version, GOOD, CORRUPT, b""))

    forwarded(play)
    play.from_broker(response_of_broker(0, 2, 2))

    assert entries_for_client(play, version) == [(0, 41), (2, -1), (0, -1)]


def test_a_rule_applies_to_the_converted_batch() -> None:
    play = converting(SLUICEGATE__TOPICS="[{match: orders, message.timestamp.before.max.ms: 1000}]")
    play.from_client(old_request(2, message(1, b"v", timestamp=NOW - 5000)))

    forwarded(play)
    play.from_broker(response_of_broker(2))

    assert entries_for_client(play, 2) == [(32, -1)]


def test_bad_records_are_marked_after_the_conversion() -> None:
    play = converting(SLUICEGATE__TOPICS="[{match: orders, message.timestamp.before.max.ms: 1000, mode: mark}]")
    play.from_client(old_request(2, message(1, b"old", timestamp=NOW - 5000) + GOOD))

    (topic,) = forwarded(play)["topic_data"]
    play.from_broker(response_of_broker(0))

    records = topic["partition_data"][0]["records"]
    assert records.count(b"sluicegate.") >= 1
    assert entries_for_client(play, 2) == [(0, 41)]


def test_the_connection_closes_after_a_rejection_with_acks_0() -> None:
    play = converting()
    play.from_client(old_request(2, CORRUPT, acks=0))

    forwarded(play)
    play.loop.run_steps()

    assert play.parts.counters.acks_0_closed == 1
    assert play.client.sent == b""


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_legacy_request_is_forwarded_unchanged_if_conversion_is_off(version: int) -> None:
    play = Playbook()
    request = old_request(version, GOOD)
    play.from_client(request)

    assert bytes(play.broker.sent) == request
    assert play.parts.counters.converted_requests == {}


@pytest.mark.parametrize(
    ("setting", "version", "produce", "fetch"),
    [
        ({}, 0, 3, 4),
        ({}, 2, 3, 4),
        ({"SLUICEGATE__LISTEN__LEGACY": "convert"}, 0, 0, 2),
        ({"SLUICEGATE__LISTEN__LEGACY": "convert"}, 2, 0, 4),
    ],
)
def test_api_versions_offers_legacy_versions_only_if_conversion_is_on(
    setting: dict[str, str], version: int, produce: int, fetch: int
) -> None:
    play = Playbook(**setting)
    play.from_client(sized_frame(build_request_header(API_VERSIONS, version, 7, "old", 1)))
    keys = [{"api_key": key, "min_version": low, "max_version": high} for key, low, high in ((0, 3, 13), (1, 4, 15))]
    response = build_response_header(7, 0) + API_VERSIONS_RESPONSE.build({"error_code": 0, "api_keys": keys}, version)

    play.from_broker(sized_frame(response))

    offered = API_VERSIONS_RESPONSE.parse(bytes(play.client.sent[8:]), version)["api_keys"]
    assert [(k["api_key"], k["min_version"], k["max_version"]) for k in offered] == [(0, produce, 13), (1, fetch, 15)]
