"""`log.level: debug` logs every connection, `log.client_id` logs those of one client, and no line contains a secret."""

import struct

from structlog.testing import capture_logs

from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_request_header
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.proxy.session.playbook import NOW, Playbook
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import produce_body, topic_data

DEBUG = {"SLUICEGATE__LOG__LEVEL": "debug", "SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_AFTER_MAX_MS": "1h"}
HEARTBEAT, METADATA, PRODUCE, API_VERSIONS, SASL_HANDSHAKE = 12, 3, 0, 18, 17
SECRET = b"swordfish"


def traced_request(key: int, version: int, body: bytes, correlation_id: int = 7, client: str = "orders") -> bytes:
    flexible = {PRODUCE: 9, METADATA: 9, HEARTBEAT: 4, API_VERSIONS: 3, SASL_HANDSHAKE: 99}[key]
    return frame_of(build_request_header(key, version, correlation_id, client, 2 if version >= flexible else 1), body)


def good_and_bad_requests(*times: int) -> bytes:
    return produce_body(7, [topic_data("t", (0, batch([Rec(time, value=SECRET) for time in times])))])


def produce_response(code: int) -> bytes:
    entry = {"index": 0, "error_code": code, "base_offset": 0, "log_append_time_ms": -1, "log_start_offset": -1}
    answer = {"responses": [{"name": "t", "partition_responses": [entry]}], "throttle_time_ms": 0}
    return frame_of(struct.pack(">i", 7), PRODUCE_RESPONSE.build(answer, 7))


def without_varying_fields(lines: list[dict[str, object]]) -> list[dict[str, object]]:
    """Remove the fields whose values differ from run to run."""
    assert {line.pop("log_level") for line in lines} <= {"debug"}
    for line in lines:
        for name in ("milliseconds", "seconds", "connection", "bytes"):
            line.pop(name, None)
    return lines


def test_trace_covers_connection_from_open_to_close() -> None:
    with capture_logs() as lines:
        play = Playbook(**DEBUG)
        play.from_client(traced_request(PRODUCE, 7, good_and_bad_requests(NOW)))
        play.from_broker(produce_response(0))
        play.from_client(traced_request(HEARTBEAT, 1, b"\0\1g\0\0\0\1\0\1m", correlation_id=8))
        play.from_broker(frame_of(struct.pack(">iih", 8, 0, 25)))
        play.session.client.eof_received()
        play.loop.run_steps()
        play.session.broker.connection_lost(None)
        play.session.client.connection_lost(None)

    assert without_varying_fields([line for line in lines if line["event"] not in ("paused", "resumed")]) == [
        {"event": "connection opened", "client_address": "192.0.2.1:5", "listener": "bootstrap"},
        {"event": "request", "api": "Produce", "api_version": 7, "correlation_id": 7},
        {"event": "client identified", "client_id": "orders"},
        {"event": "response", "api": "Produce", "correlation_id": 7, "codes": ["NONE"]},
        {"event": "request", "api": "Heartbeat", "api_version": 1, "correlation_id": 8},
        {"event": "response", "api": "Heartbeat", "correlation_id": 8, "codes": ["25"]},
        {"event": "connection closed", "by": "client", "requests": 2},
    ]
    assert SECRET.decode() not in str(lines)


def test_rejection_is_traced_with_error_code_sent_to_client() -> None:
    with capture_logs() as lines:
        play = Playbook(**DEBUG)
        play.from_client(traced_request(PRODUCE, 7, good_and_bad_requests(NOW * 1000)))
        play.from_broker(frame_of(struct.pack(">ii", -1, 0)))  # log start offsets, which the proxy requested
        play.from_broker(produce_response(2))

    assert [line["codes"] for line in lines if line["event"] == "response"] == [["INVALID_TIMESTAMP"]]


def test_a_pause_is_traced_with_its_reason() -> None:
    with capture_logs() as lines:
        play = Playbook(**DEBUG)
        play.from_client(traced_request(METADATA, 1, b"\0\0\0\0"))

    assert next(line for line in lines if line["event"] in ("paused", "resumed")) | {"connection": 0} == {
        "event": "paused",
        "side": "client",
        "reason": "connecting",
        "connection": 0,
        "log_level": "debug",
    }


def test_only_configured_client_is_traced_including_connection_opened() -> None:
    only_orders = {"SLUICEGATE__LOG__CLIENT_ID": "orders"}
    with capture_logs() as lines:
        for client in ("payments", "orders"):
            play = Playbook(**only_orders)
            play.from_client(traced_request(METADATA, 1, b"\0\0\0\0", client=client))
            play.from_client(traced_request(METADATA, 1, b"\0\0\0\0", client=client))

    followed = [line for line in lines if line["log_level"] == "debug"]
    assert [line["event"] for line in followed if line["event"] not in ("paused", "resumed")] == [
        "connection opened",
        "request",
        "client identified",
        "request",
    ]
    assert "payments" not in str(followed)


def test_no_connection_is_traced_by_default() -> None:
    with capture_logs() as lines:
        play = Playbook()
        play.from_client(traced_request(PRODUCE, 7, good_and_bad_requests(NOW)))

    assert lines == []


def test_a_login_is_traced_without_its_token() -> None:
    with capture_logs() as lines:
        play = Playbook(**DEBUG)
        play.from_client(traced_request(SASL_HANDSHAKE, 0, b"\0\5PLAIN"))
        play.from_broker(frame_of(struct.pack(">ihi", 7, 0, 0)))
        play.from_client(frame_of(b"\0alice\0" + SECRET))

    assert [line["event"] for line in lines if line["event"] not in ("paused", "resumed")] == [
        "connection opened",
        "request",
        "client identified",
        "response",
        "SASL token",
    ]
    assert SECRET.decode() not in str(lines)
