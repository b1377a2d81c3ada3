"""What a session keeps, and how it ends, told as scripts between a client and a broker."""

import gc
import struct
import tracemalloc

import pytest

from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_request_header
from sluicegate.protocol.messages import list_offsets, produce
from sluicegate.proxy.session.memory import Gathering
from tests.proxy.sessions import Script, now_ms, turns_of_the_loop
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import produce_body, topic_data

_HALF_MIB = b"v" * (512 * 1024)


def produce_frame(records: bytes, acks: int, version: int = 9) -> bytes:
    body = produce_body(version, [topic_data("t", (0, records))], acks)
    return frame_of(build_request_header(0, version, 7, "test", 2), body)


def api_versions_frame(version: int = 0) -> bytes:
    return frame_of(build_request_header(18, version, 7, "test", 1))


async def test_a_producer_that_wants_no_answers_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch)
    frame = produce_frame(batch([Rec(now_ms(), value=_HALF_MIB)]), acks=0)
    tracemalloc.start()

    for _ in range(100):
        script.from_client(frame)
        script.broker.sent.clear()
        await turns_of_the_loop()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 10 << 20


async def test_what_a_broker_has_not_taken_is_not_given_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch)
    frames = [produce_frame(batch([Rec(now_ms(), value=bytes([n]) * 50_000)]), acks=0) for n in range(3)]
    script.broker.stuck = True

    for frame in frames:
        script.from_client(frame)
        await turns_of_the_loop()
    assert not script.client.is_read
    script.broker.take_all()

    assert script.client.is_read
    assert b"".join(frames).startswith(script.broker.sent)
    assert len(script.broker.sent) >= len(frames[0]) + len(frames[1])


async def test_who_reads_no_answers_is_not_read_either(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch)
    script.client.stuck = True

    for _ in range(100_000):
        script.from_client(api_versions_frame(version=99))
        await turns_of_the_loop(1)
        if not script.client.is_read:
            break

    assert script.client.get_write_buffer_size() < 200_000
    script.client.take_all()
    assert script.client.is_read


async def test_many_requests_at_once_are_taken_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch)
    many = 500

    script.from_client(api_versions_frame() * many)
    at_once = script.broker.sent.count(b"test")
    await turns_of_the_loop(many)

    assert at_once < many
    assert script.broker.sent.count(b"test") == many


async def test_who_only_connects_costs_the_cluster_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch)
    connected: list[object] = []

    async def connect(*_: object) -> None:
        connected.append(_)

    monkeypatch.setattr("sluicegate.proxy.session.session.connect", connect)
    await turns_of_the_loop()
    script.session.client.protocol.eof_received()

    assert not connected
    assert script.client.is_closing()


async def test_a_fault_of_ours_ends_the_session_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch)
    script.context.judges = None  # type: ignore[assignment]  # something is broken

    script.from_client(produce_frame(batch([Rec(now_ms())]), acks=1))

    assert script.client.aborted
    assert script.broker.aborted


async def test_nothing_is_judged_before_the_login_that_the_cluster_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch)
    script.context.needs_login = True

    script.from_client(api_versions_frame() + produce_frame(batch([Rec(now_ms())]), acks=1))

    assert script.broker.sent == api_versions_frame()
    assert script.context.tally.bad_clients == 1
    assert script.context.tally.produce_requests == 0


async def test_a_request_that_anybody_may_send_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch)

    script.from_client(struct.pack(">ihhi", 600_000, 18, 3, 1))

    assert script.client.is_closing()
    assert script.context.tally.bad_clients == 1


async def test_a_connection_over_the_limit_is_let_go_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, SLUICEGATE__LIMITS__MAX_CONNECTIONS="1")
    second = type(script.session)(script.context, lambda _: script.session.route)
    outlet = type(script.client)(second.client)

    second.client.connection_made(outlet)

    assert outlet.aborted
    assert not script.client.is_closing()
    assert script.context.tally.connections_refused["limits.max_connections"] == 1


@pytest.mark.parametrize("silent_for", [4.0, 100.0])
async def test_a_request_that_never_ends_is_cut_off_also_while_the_proxy_reads_nothing(
    monkeypatch: pytest.MonkeyPatch, silent_for: float
) -> None:
    script = Script(monkeypatch, SLUICEGATE__LIMITS__FRAME_SECONDS="3", SLUICEGATE__LIMITS__MAX_IN_FLIGHT="2")
    script.from_client(api_versions_frame() * 2 + struct.pack(">ihhi", 50_000, 0, 9, 1))
    assert not script.client.is_read

    script.session.look(1000.0)
    script.session.look(1000.0 + silent_for)

    assert script.client.aborted
    assert script.context.tally.cut_off["limits.frame_seconds"] == 1


async def test_answers_to_refused_requests_are_kept_for_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_BEFORE_MAX_MS="1000")
    log_start = {"partition_index": 0, "error_code": 0, "timestamp": -1, "offset": 5}
    log_starts = list_offsets.RESPONSE.build({"topics": [{"name": "t", "partitions": [log_start]}]}, 1)
    bad = produce_frame(batch([Rec(n) for n in range(900)]), acks=1)

    for _ in range(10):
        script.from_client(bad)
    refused = script.context.tally.produce_requests
    said = {"name": "t", "partition_responses": [{"index": 0, "error_code": 2, "base_offset": -1}]}
    answer = produce.RESPONSE.build({"responses": [said]}, 9)

    assert refused < 3
    script.from_broker(frame_of(struct.pack(">i", -1), log_starts))
    script.from_broker(frame_of(struct.pack(">ib", 7, 0), answer))
    assert script.client.is_read


async def test_what_is_judged_for_a_client_that_has_left_still_counts_against_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = {"SLUICEGATE__LIMITS__MAX_FRAME_BYTES": "100000", "SLUICEGATE__LIMITS__MAX_GATHERED_BYTES": "800000"}
    script = Script(monkeypatch, **limits)
    share = script.context.budget.small  # of 200,000 bytes
    body = produce_body(9, [topic_data("t", *((n, batch([Rec(now_ms())])) for n in range(300)))])

    script.from_client(frame_of(build_request_header(0, 9, 7, "test", 2), body))
    script.session.client.protocol.connection_lost(None)

    assert not Gathering(share, lambda: None).want(200_000 - len(body))
    script.session.broker.protocol.connection_lost(None)
    await turns_of_the_loop()
    assert Gathering(share, lambda: None).want(1000)


@pytest.mark.parametrize(
    "ending", ["idle", "answered", "refused", "under way", "half a frame", "garbage", "another version"]
)
async def test_a_session_that_has_ended_leaves_the_garbage_collector_nothing(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()
    gc.disable()
    try:
        await _one_life(ending, monkeypatch)
        left = [each for each in gc.get_objects() if str(type(each).__module__).startswith(("proxy.", "protocol."))]
    finally:
        gc.enable()

    kinds = {"Session", "ClientSide", "BrokerSide", "ProduceGate", "Connection", "FrameReader", "Gathering"}
    kinds |= {"FastRequests", "FastAnswers", "Exchange"}
    assert not kinds & {type(each).__name__ for each in left}


async def _one_life(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch)
    script.from_client(api_versions_frame(2))
    script.from_broker(frame_of(struct.pack(">ihii", 7, 0, 0, 0)))
    requests = {
        "answered": produce_frame(batch([Rec(now_ms())]), -1),
        "refused": produce_frame(batch([Rec(1)]), -1),
        "under way": produce_frame(batch([Rec(now_ms())]), -1, 11),
        "half a frame": produce_frame(batch([Rec(1)]), -1)[:-5],
        "garbage": b"\x7f" * 50,
        "another version": api_versions_frame(99),
    }
    script.from_client(requests.get(ending, b""))
    if ending == "answered":
        script.from_broker(frame_of(struct.pack(">i", 7), bytes(20)))
    script.session.client.abort()
    script.session.broker.abort()
    await turns_of_the_loop(5)
    assert script.session not in script.context.sessions
