"""Tests the state that a session keeps, and how it ends, as scripts with a client and a broker."""

import gc
import struct
import tracemalloc
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_request_header
from sluicegate.protocol.messages.fetch import LIST_OFFSETS_RESPONSE
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.proxy.session.memory import Gathering
from sluicegate.proxy.session.outlets import UpstreamUnreachable
from sluicegate.validation.previous_times import PreviousTimes
from tests.bounds.frames import good_batch, int32, sized_frame, sized_request
from tests.bounds.frames import sized_produce_request as produce_request
from tests.proxy.session.playbook import NOW, Playbook, objects_of_sessions, replace_produce_dependencies
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import produce_body, topic_data

_HALF_MIB = b"v" * (512 * 1024)


def produce_frame(records: bytes, acks: int, version: int = 9) -> bytes:
    body = produce_body(version, [topic_data("t", (0, records))], acks)
    return frame_of(build_request_header(0, version, 7, "test", 2), body)


def api_versions_frame(version: int = 0) -> bytes:
    return frame_of(build_request_header(18, version, 7, "test", 1))


def test_a_producer_with_acks_0_uses_bounded_memory() -> None:
    play = Playbook()
    frame = produce_frame(batch([Rec(NOW, value=_HALF_MIB)]), acks=0)
    tracemalloc.start()

    for _ in range(100):
        play.from_client(frame)
        play.loop.until(lambda: play.broker.sent == frame)  # on a slow machine, a thread validates it
        play.broker.sent.clear()
        play.loop.run_steps()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 10 << 20


def test_frame_buffer_is_not_reused_before_the_broker_reads_it() -> None:
    play = Playbook()
    frames = [produce_frame(batch([Rec(NOW, value=bytes([n]) * 50_000)]), acks=0) for n in range(3)]
    play.broker.stuck = True

    for frame in frames:
        play.from_client(frame)
        play.loop.run_steps()
    assert not play.client.is_read
    play.broker.take_all()

    assert play.client.is_read
    assert b"".join(frames).startswith(play.broker.sent)
    assert len(play.broker.sent) >= len(frames[0]) + len(frames[1])


def test_a_client_that_reads_no_responses_is_paused() -> None:
    play = Playbook()
    play.client.stuck = True

    for _ in range(100_000):
        play.from_client(api_versions_frame(version=99))
        play.loop.run_steps(1)
        if not play.client.is_read:
            break

    assert play.client.get_write_buffer_size() < 200_000
    play.client.take_all()
    assert play.client.is_read


def test_many_pipelined_requests_are_handled_over_several_loop_iterations() -> None:
    play = Playbook()
    many = 500

    play.from_client(api_versions_frame() * many)
    at_once = play.broker.sent.count(b"test")
    play.loop.run_steps(many)

    assert at_once < many
    assert play.broker.sent.count(b"test") == many


def test_an_idle_client_opens_no_broker_connection() -> None:
    play = Playbook()

    play.loop.run_steps()
    play.session.client.eof_received()

    assert play.failed is None, "no callback was called"
    assert play.client.is_closing()


def test_client_is_closed_if_no_broker_is_reachable() -> None:
    play = Playbook()
    play.broker_comes = False
    play.from_client(api_versions_frame())
    assert play.failed is not None

    with capture_logs() as lines:
        play.failed(UpstreamUnreachable("h:1: nobody there"))

    assert play.client.aborted
    assert play.parts.counters.upstream_failures == 1
    assert [(line["event"], line["reason"]) for line in lines] == [("broker unreachable", "h:1: nobody there")]


@pytest.mark.internal_error
def test_an_internal_error_ends_the_session_and_is_logged() -> None:
    broken = SimpleNamespace(previous=PreviousTimes(), converts_legacy=False)
    play = Playbook(change=lambda dependencies: replace_produce_dependencies(dependencies, scheduler=broken))

    with capture_logs() as lines:
        play.from_client(produce_frame(batch([Rec(NOW)]), acks=1))

    assert play.client.aborted
    assert play.broker.aborted
    assert [line["log_level"] for line in lines] == ["error"]


def test_checking_draining_and_closing_an_ended_session_has_no_effect() -> None:
    play = Playbook()
    play.session.client.connection_lost(None)

    play.session.check_deadlines(1000.0)
    play.session.drain()
    play.session.close_now()

    assert play.parts.counters.connections_closed == 1


@pytest.mark.parametrize("sent", [20, 26], ids=["in part", "whole"])
@pytest.mark.parametrize("broker_is_there", [False, True], ids=["before a broker has come", "behind another request"])
def test_request_partly_received_before_drain_gets_its_response(broker_is_there: bool, sent: int) -> None:
    heartbeat = frame_of(build_request_header(12, 1, 7, "test", 1), bytes(8))
    answer = frame_of(struct.pack(">iih", 7, 0, 0))
    before = int(broker_is_there)
    play = Playbook()
    play.broker_comes = broker_is_there
    play.from_client(heartbeat * before + heartbeat[:sent])

    play.session.drain()
    play.broker_comes = True
    play.from_client(heartbeat[sent:])
    play.from_client(heartbeat)
    assert play.broker.sent == heartbeat * (before + 1), "the second request is not forwarded"
    play.from_broker(answer * (before + 1))

    assert play.client.sent == answer * (before + 1)
    assert play.broker.has_ended_writing


def test_nothing_is_validated_before_a_required_login() -> None:
    play = Playbook()
    play.parts.login.is_wanted = True

    play.from_client(api_versions_frame() + produce_frame(batch([Rec(NOW)]), acks=1))

    assert play.broker.sent == api_versions_frame()
    assert play.parts.counters.protocol_errors == 1
    assert play.parts.counters.produce_requests == 0


@pytest.mark.parametrize("has_fast_path", {False, HAS_FAST_PATH})
def test_broker_response_resumes_the_client_in_a_later_loop_iteration(has_fast_path: bool) -> None:
    play = Playbook(has_fast_path, SLUICEGATE__LIMITS__MAX_IN_FLIGHT="2")
    heartbeat = frame_of(build_request_header(12, 1, 7, "test", 1), bytes(8))
    play.from_client(heartbeat)
    play.from_client(heartbeat)
    play.session.client.get_buffer(-1)[: len(heartbeat)] = heartbeat
    play.session.client.buffer_updated(len(heartbeat))  # a transport may still deliver bytes after it was paused
    assert play.broker.sent == heartbeat * 2

    play.from_broker(frame_of(struct.pack(">iih", 7, 0, 0)))
    assert play.broker.sent == heartbeat * 2, "within the call that delivered the response"
    play.loop.run_steps()

    assert play.broker.sent == heartbeat * 3


def test_a_large_request_before_the_login_closes_the_connection() -> None:
    play = Playbook()

    play.from_client(struct.pack(">ihhi", 600_000, 18, 3, 1))

    assert play.client.is_closing()
    assert play.parts.counters.protocol_errors == 1


def test_a_connection_above_the_limit_is_aborted_and_counted() -> None:
    play = Playbook(SLUICEGATE__LIMITS__MAX_CONNECTIONS="1")

    _, second = play.another_session()

    assert second.aborted
    assert not play.client.is_closing()
    assert play.parts.counters.connections_rejected["limits.max_connections"] == 1


@pytest.mark.parametrize("silent_for", [4.0, 100.0])
def test_incomplete_request_times_out_even_while_the_client_is_paused(silent_for: float) -> None:
    play = Playbook(SLUICEGATE__LIMITS__FRAME_TIMEOUT_SECONDS="3", SLUICEGATE__LIMITS__MAX_IN_FLIGHT="2")
    play.from_client(api_versions_frame() * 2 + struct.pack(">ihhi", 50_000, 0, 9, 1))
    assert not play.client.is_read

    play.session.check_deadlines(1000.0)
    play.session.check_deadlines(1000.0 + silent_for)

    assert play.client.aborted
    assert play.parts.counters.closed_by_limit["limits.frame_timeout_seconds"] == 1


def test_clients_are_paused_while_many_rejections_are_pending() -> None:
    play = Playbook(SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_BEFORE_MAX_MS="1000")
    log_start = {"partition_index": 0, "error_code": 0, "timestamp": -1, "offset": 5}
    log_starts = LIST_OFFSETS_RESPONSE.build({"topics": [{"name": "t", "partitions": [log_start]}]}, 1)
    bad = produce_frame(batch([Rec(n) for n in range(900)]), acks=1)

    for _ in range(10):
        play.from_client(bad)
    forwarded = len(play.session.queue)
    said = {"name": "t", "partition_responses": [{"index": 0, "error_code": 2, "base_offset": -1}]}
    answer = PRODUCE_RESPONSE.build({"responses": [said]}, 9)

    assert forwarded < 4
    play.from_broker(frame_of(struct.pack(">i", -1), log_starts))
    play.from_broker(frame_of(struct.pack(">ib", 7, 0), answer))
    assert play.client.is_read


def test_validation_for_a_closed_client_still_counts_as_used_memory() -> None:
    limits = {"SLUICEGATE__LIMITS__MAX_FRAME_BYTES": "100000", "SLUICEGATE__LIMITS__MAX_BUFFERED_BYTES": "800000"}
    play = Playbook(**limits)
    share = play.parts.dependencies.requests.budget.small  # of 200,000 bytes
    body = produce_body(9, [topic_data("t", *((n, batch([Rec(NOW)])) for n in range(300)))])

    play.from_client(frame_of(build_request_header(0, 9, 7, "test", 2), body))
    play.session.client.connection_lost(None)

    assert not Gathering(share, lambda: None).reserve(200_000 - len(body))
    play.session.broker.connection_lost(None)
    play.loop.run_steps()
    assert Gathering(share, lambda: None).reserve(1000)


@pytest.mark.parametrize(
    "ending", ["idle", "answered", "rejected", "under way", "half a frame", "garbage", "another version"]
)
def test_an_ended_session_leaves_no_reference_cycle(
    ending: str,
) -> None:
    gc.collect()
    gc.disable()
    try:
        before = objects_of_sessions()
        _one_life(ending)
        left = objects_of_sessions() - before
    finally:
        gc.enable()

    assert not left


def _one_life(ending: str) -> None:
    play = Playbook()
    play.from_client(api_versions_frame(2))
    play.from_broker(frame_of(struct.pack(">ihii", 7, 0, 0, 0)))
    requests = {
        "answered": produce_frame(batch([Rec(NOW)]), -1),
        "rejected": produce_frame(batch([Rec(1)]), -1),
        "under way": produce_frame(batch([Rec(NOW)]), -1, 11),
        "half a frame": produce_frame(batch([Rec(1)]), -1)[:-5],
        "garbage": b"\x7f" * 50,
        "another version": api_versions_frame(99),
    }
    play.from_client(requests.get(ending, b""))
    if ending == "answered":
        play.from_broker(frame_of(struct.pack(">i", 7), bytes(20)))
    play.session.client.abort()
    play.session.broker.abort()
    play.loop.run_steps(5)
    assert play.session not in play.parts.sessions
    del play.session, play.client, play.broker, play.failed  # the playbook itself waits for the garbage collector


_FETCH, _METADATA = sized_request(1, 11, b"\xff" * 4 + bytes(34), 7), sized_request(3, 9, b"\0\1\0\0\0", 7)


@pytest.mark.parametrize("has_fast_path", [False, True] if HAS_FAST_PATH else [False])
@pytest.mark.parametrize("asked", [_FETCH, _METADATA, produce_request(9, {b"orders": [(0, good_batch(NOW))]}, -1, 7)])
@pytest.mark.parametrize(
    ("response", "received"),
    [(int32(8) + bytes(20), 8), (int32(-1), -1), (b"\0", None)],
    ids=["next", "never", "short"],
)
def test_out_of_order_response_closes_the_connection_and_logs_advice(
    asked: bytes, response: bytes, received: int | None, has_fast_path: bool
) -> None:
    play = Playbook(has_fast_path)
    play.from_client(asked + asked[:8] + int32(8) + asked[12:])
    with capture_logs() as lines:
        play.from_broker(sized_frame(response))
        play.parts.log.flush()

    (line,) = lines
    assert (line["event"], line["broker"]) == ("upstream connection closed", "bootstrap")
    assert (line["address"], line["expected"], line.get("received")) == ("192.0.2.3:9092", 7, received)
    assert "order of its requests" in line["advice"]
    assert play.client.closed
    assert not play.client.sent


def test_unexpected_response_closes_the_connection_and_is_logged() -> None:
    play = Playbook()
    play.from_client(_FETCH)
    play.from_broker(sized_frame(int32(7) + bytes(20)))
    with capture_logs() as lines:
        play.from_broker(sized_frame(int32(7) + bytes(20)))
        play.parts.log.flush()

    assert (lines[0]["expected"], lines[0]["received"]) == ("no response", 7)
