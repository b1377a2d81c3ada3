"""Input at a limit passes. Input beyond it is counted by the limit's key, and ends the connection or waits, as in
docs/limits.md."""

import pytest
from structlog.testing import capture_logs

from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_request_header
from sluicegate.proxy.session.handlers.session import Session
from tests.proxy.session.handlers.test_session import api_versions_frame, produce_frame
from tests.proxy.session.playbook import NOW, Outlet, Playbook, deliver_from_peer
from tests.wire.batches import GZIP, LZ4, NONE, SNAPPY, Rec, batch, identical_records, record
from tests.wire.raw_client import produce_body, topic_data

_HEADER_BYTES = 61  # the header of a batch of magic 2 (KIP-98)


def session_with_limits(**limits: int) -> Playbook:
    return Playbook(
        SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_BEFORE_MAX_MS="1h",
        **{f"SLUICEGATE__LIMITS__{key.upper()}": str(value) for key, value in limits.items()},
    )


def counted_limits(play: Playbook) -> dict[str, int]:
    return dict(play.parts.counters.limits_reached)


def limits_reached_at_the_end(play: Playbook) -> dict[str, int]:
    """Return the counted limits at the end of the session, because limits in batches count when the outcome is
    known."""
    play.ends()
    return counted_limits(play)


def request_to(partitions: int) -> bytes:
    good = batch([Rec(NOW)])
    body = produce_body(9, [topic_data("t", *((number, good) for number in range(partitions)))])
    return frame_of(build_request_header(0, 9, 7, "test", 2), body)


def send_request(play: Playbook, data: bytes) -> None:
    """Send a request and wait until it, or its replacement, was forwarded to the broker."""
    play.from_client(produce_frame(data, acks=-1))
    play.loop.until(lambda: bool(play.broker.sent or play.client.sent or play.client.is_closing()))
    play.loop.run_steps()


@pytest.mark.parametrize(("size", "beyond"), [(2_000, {}), (2_001, {"limits.max_frame_bytes": 1})])
def test_frame_at_the_size_limit_is_accepted_and_a_larger_one_closes_connection(
    size: int, beyond: dict[str, int]
) -> None:
    play = session_with_limits(max_frame_bytes=2_000, max_buffered_bytes=20_000)

    with capture_logs() as lines:
        play.from_client(size.to_bytes(4, "big") + produce_frame(b"", acks=-1)[4:])

    assert play.client.is_closing() == bool(beyond)
    assert counted_limits(play) == beyond
    assert [line for line in lines if "limits.max_frame_bytes" in line["reason"]] == lines
    assert len(lines) == len(beyond)


def test_negative_frame_size_is_not_counted_as_a_limit() -> None:
    play = session_with_limits()

    play.from_client((-1).to_bytes(4, "big", signed=True) + bytes(20))

    assert play.client.is_closing()
    assert counted_limits(play) == {}


@pytest.mark.parametrize(("partitions", "beyond"), [(2, {}), (3, {"limits.max_request_partitions": 1})])
def test_partitions_at_the_limit_are_accepted_and_one_more_closes_connection(
    partitions: int, beyond: dict[str, int]
) -> None:
    play = session_with_limits(max_request_partitions=3)  # the topic itself counts as one

    with capture_logs() as lines:
        play.from_client(request_to(partitions))
        play.loop.until(lambda: bool(play.broker.sent or play.broker.has_ended_writing))
    play.session.broker.connection_lost(None)

    assert bool(play.broker.sent) == (not beyond)
    assert counted_limits(play) == beyond
    assert ["limits.max_request_partitions" in line["reason"] for line in lines] == [True] * len(beyond)


@pytest.mark.parametrize(("records", "beyond"), [(4, {}), (5, {"limits.max_request_records": 1})])
def test_records_at_the_limit_are_accepted_and_one_more_closes_connection(records: int, beyond: dict[str, int]) -> None:
    """Records of all batches and partitions count together, compressed or not, with those before."""
    play = session_with_limits(max_request_records=9)
    parts = (batch([Rec(NOW)] * records, GZIP), batch([Rec(NOW)] * 3), batch([Rec(NOW)] * 2))
    body = produce_body(9, [topic_data("t", *enumerate(parts))])
    many = frame_of(build_request_header(0, 9, 7, "test", 2), body)
    few = produce_frame(batch([Rec(NOW)] * 9), acks=-1)

    with capture_logs() as lines:
        play.from_client(few)
        play.loop.until(lambda: play.broker.sent == few)
        play.from_client(many)
        play.loop.until(lambda: len(play.broker.sent) > len(few) or counted_limits(play) != {})

    assert play.broker.sent == few + (b"" if beyond else many)
    assert counted_limits(play) == beyond
    assert ["limits.max_request_records (9)" in line["reason"] for line in lines] == [True] * len(beyond)


@pytest.mark.parametrize("codec", [NONE, GZIP, LZ4])
@pytest.mark.parametrize(("headers", "beyond"), [(2, {}), (3, {"limits.max_request_headers": 1})])
def test_headers_at_the_limit_are_accepted_and_one_more_is_rejected(
    headers: int, beyond: dict[str, int], codec: int
) -> None:
    """Headers of all records and partitions count together; a later batch without headers passes."""
    play = session_with_limits(max_request_headers=5)
    parts = [
        batch([Rec(NOW, b"k", b"v", [(b"name", b"value")] * 3)], codec),
        batch([Rec(NOW), Rec(NOW, b"k", None, [(b"", None)] * headers)], codec),
        batch([Rec(NOW)], codec),
    ]
    body = produce_body(9, [topic_data("t", *enumerate(parts))])

    play.from_client(frame_of(build_request_header(0, 9, 7, "test", 2), body))
    play.loop.until(lambda: bool(play.broker.sent))

    assert [part in play.broker.sent for part in parts] == [True, not beyond, True]
    assert not play.client.is_closing()
    assert limits_reached_at_the_end(play) == beyond


def large_batch(codec: int) -> tuple[bytes, int]:
    """Return a batch and the decompressed size of its payload (bytes)."""
    payload = identical_records(Rec(NOW, b"", bytes(1000)), 2_000, NOW)
    return batch([], codec, payload=payload, count=2_000, base_timestamp=NOW, max_timestamp=NOW), len(payload)


def decompression_case(key: str, is_beyond: bool) -> tuple[bytes, int]:
    """Return a batch, and a limit that it just meets or just exceeds."""
    if key == "max_decompression_window_bytes":
        one = record(Rec(NOW, b"", bytes(5_000)), 0, NOW)
        data = batch([], SNAPPY, payload=one, count=1, base_timestamp=NOW, max_timestamp=NOW)
        return data, len(one) - is_beyond
    data, size = large_batch(GZIP)
    if key == "max_decompressed_bytes":
        return data, size - is_beyond
    return data, -(-size // (len(data) - _HEADER_BYTES)) - is_beyond


@pytest.mark.parametrize("is_beyond", [False, True])
@pytest.mark.parametrize("key", ["max_decompressed_bytes", "max_decompression_ratio", "max_decompression_window_bytes"])
def test_a_payload_at_the_decompression_limit_is_forwarded_and_a_larger_one_rejected(key: str, is_beyond: bool) -> None:
    data, value = decompression_case(key, is_beyond)
    play = session_with_limits(**{key: value})

    send_request(play, data)

    assert (data in play.broker.sent) == (not is_beyond)
    assert not play.client.is_closing()
    assert limits_reached_at_the_end(play) == ({f"limits.{key}": 1} if is_beyond else {})


@pytest.mark.parametrize(("bad", "beyond"), [(2, {}), (3, {"limits.max_record_errors": 1})])
def test_record_errors_beyond_the_response_limit_are_counted(bad: int, beyond: dict[str, int]) -> None:
    play = session_with_limits(max_record_errors=2)

    send_request(play, batch([Rec(5)] * bad))

    assert not play.client.is_closing()
    assert limits_reached_at_the_end(play) == beyond


@pytest.mark.parametrize(("requests", "beyond"), [(1, {}), (2, {"limits.max_in_flight": 1})])
def test_client_at_the_in_flight_limit_is_paused(requests: int, beyond: dict[str, int]) -> None:
    play = session_with_limits(max_in_flight=2)

    play.from_client(api_versions_frame() * requests)

    assert play.client.is_read == (not beyond)
    assert counted_limits(play) == beyond
    assert not play.client.is_closing()


POLL = frame_of(build_request_header(1, 11, 7, "test", 1), bytes(20))
POLLED = bytes.fromhex("00000004 00000007")


def test_a_partial_request_is_read_to_its_end_at_the_in_flight_limit() -> None:
    """Otherwise the request would never get a response, for which the session would wait."""
    play = session_with_limits(max_in_flight=1)

    play.from_client(POLL[:20])
    assert play.client.is_read

    play.from_client(POLL[20:] + POLL)
    assert not play.client.is_read
    assert counted_limits(play) == {"limits.max_in_flight": 1}
    play.from_broker(POLLED * 2)
    assert play.client.is_read


def client_that_polls(play: Playbook) -> tuple[Outlet, Session]:
    """Return another client, whose first poll its broker has received."""
    session, client = play.another_session()
    deliver_from_peer(session.client, client, POLL)
    play.loop.run_steps(1)
    broker = Outlet(session.broker)
    session.broker.connection_made(broker)
    play.loop.run_steps()
    assert broker.sent == POLL
    return client, session


def test_clients_at_the_total_in_flight_limit_resume_in_order() -> None:
    play = session_with_limits(max_in_flight_total=3)
    play.from_client(POLL * 2)
    assert play.client.is_read
    assert counted_limits(play) == {}

    with capture_logs() as lines:
        first, session = client_that_polls(play)
        second, _ = client_that_polls(play)
        play.from_client(POLL)
    everybody = (first, second, play.client)

    assert not any(client.is_read for client in everybody)
    assert counted_limits(play) == {"limits.max_in_flight_total": 3}
    assert [line["limit"] for line in lines] == ["limits.max_in_flight_total"]
    play.from_broker(POLLED * 2)
    play.loop.time_passes(0.01)
    assert not any(client.is_read for client in everybody)
    play.from_broker(POLLED)
    play.loop.time_passes(0.01)
    assert [client.is_read for client in everybody] == [True, False, False]
    deliver_from_peer(session.broker, Outlet(session.broker), POLLED)
    play.loop.time_passes(0.01)
    assert all(client.is_read for client in everybody)


def test_a_connection_that_closes_while_it_waits_releases_its_slot() -> None:
    play = session_with_limits(max_in_flight_total=1)
    first, session = client_that_polls(play)
    second, _ = client_that_polls(play)
    assert (first.is_read, second.is_read) == (False, False)

    session.close_now()
    session.broker.connection_lost(None)
    play.loop.time_passes(0.01)
    assert not second.is_read  # the client's own request is in flight

    play.from_client(POLL)
    assert not play.client.is_read


@pytest.mark.parametrize(("size", "beyond"), [(2_000, {}), (2_001, {"limits.max_buffered_bytes": 1})])
def test_large_requests_beyond_their_memory_share_are_paused_and_counted(size: int, beyond: dict[str, int]) -> None:
    """Of 8,889 bytes, nine sixteenths less one largest frame are for large requests."""
    play = session_with_limits(max_frame_bytes=3_000, max_buffered_bytes=8_889)
    empty = len(produce_frame(batch([Rec(NOW, value=bytes(1_500))]), acks=-1)) - 4 - 1_500
    frame = produce_frame(batch([Rec(NOW, value=bytes(size - empty))]), acks=-1)
    assert len(frame) == 4 + size

    play.from_client(frame)
    play.loop.until(lambda: play.broker.sent == frame)

    assert counted_limits(play) == beyond
    assert not play.client.is_closing()
