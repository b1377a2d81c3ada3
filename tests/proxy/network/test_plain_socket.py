"""A native socket behaves like an event loop's own transport, with and without TLS. Each test runs for all of them."""

import asyncio
import gc
import os
import socket
import weakref
from contextlib import suppress

import pytest

from sluicegate.proxy.network.native_sockets import HAS_NATIVE_SOCKETS
from sluicegate.proxy.session.pause_reason import PauseReason
from tests.proxy.network.wires import (
    ConnectionWithPeer,
    PlainPeer,
    TlsPeer,
    attach_natively,
    connect_with_peer,
    for_all_sockets,
    random_frame,
    wait_until,
)

MUCH = 8 << 20


@for_all_sockets
async def test_received_bytes_equal_the_sent_bytes(wire: ConnectionWithPeer) -> None:
    data = random_frame(MUCH)

    await wire.send(data)

    await wait_until(lambda: len(wire.told.received) == MUCH)
    assert wire.told.received == data
    assert wire.connection.bytes_in == MUCH


@for_all_sockets
async def test_written_parts_arrive_in_order(wire: ConnectionWithPeer) -> None:
    parts = [os.urandom(size) for size in (1, 0, 5, 70_000, 3, 200_000)] + [b"%d" % i for i in range(300)]

    for part in parts[:3]:
        wire.connection.write(part)
    wire.connection.write_parts([bytearray(parts[3]), memoryview(parts[4]), parts[5], b""])
    for part in parts[6:]:
        wire.connection.write(memoryview(part))

    whole = b"".join(parts)
    assert await wire.read(len(whole)) == whole


@for_all_sockets
async def test_writes_within_a_read_arrive_in_order(wire: ConnectionWithPeer) -> None:
    def echo_in_two_writes(data: bytes) -> None:
        wire.connection.write(data[:1])
        wire.connection.write(data[1:])

    wire.told.answer = echo_in_two_writes
    data = random_frame(300_000)

    async with asyncio.TaskGroup() as both:
        both.create_task(wire.send(data))
        echo = both.create_task(wire.read(len(data)))

    assert echo.result() == data


@for_all_sockets
async def test_a_peer_that_does_not_read_causes_full_and_drained_events(wire: ConnectionWithPeer) -> None:
    data = os.urandom(MUCH)

    for at in range(0, MUCH, 100_000):
        wire.connection.write(data[at : at + 100_000])

    await wait_until(lambda: wire.connection.is_full)
    assert wire.told.events[-1] == "full"
    assert 0 < wire.connection.unsent_bytes < MUCH
    assert not wire.connection.has_sent_all

    assert await wire.read(MUCH) == data  # all bytes arrive when the peer reads
    await wait_until(lambda: wire.connection.has_sent_all)
    assert wire.told.events[-1] == "drained"
    assert wire.told.events.count("full") == wire.told.events.count("drained")


@pytest.mark.long
@for_all_sockets
async def test_close_flushes_written_bytes(wire: ConnectionWithPeer) -> None:
    data = os.urandom(MUCH)
    wire.connection.write(data)

    wire.connection.close()
    wire.connection.write(b"nothing more")

    assert await wire.read(MUCH + 1) == data
    await wire.told.lost.wait()
    assert wire.told.error is None


@for_all_sockets
async def test_abort_discards_unsent_bytes(wire: ConnectionWithPeer) -> None:
    wire.connection.write(os.urandom(MUCH))

    wire.connection.abort()
    wire.connection.abort()

    await wire.told.lost.wait()
    with suppress(ConnectionResetError):
        assert len(await wire.read(MUCH)) < MUCH
    assert wire.told.events.count("lost") == 1
    assert wire.connection.has_sent_all  # no output is left


@for_all_sockets
async def test_written_bytes_are_sent_before_the_end_and_responses_are_still_read(wire: ConnectionWithPeer) -> None:
    data = os.urandom(MUCH)
    wire.connection.write(data)

    wire.connection.write_eof()

    assert await wire.read(MUCH + 1) == data
    await wire.send(random_frame(100))
    await wait_until(lambda: len(wire.told.received) == 100)
    assert "lost" not in wire.told.events


@for_all_sockets
async def test_a_half_closed_peer_is_reported_and_can_still_be_written_to(wire: ConnectionWithPeer) -> None:
    await wire.send(random_frame(100))
    wire.peer.shutdown(socket.SHUT_WR)

    await wait_until(lambda: "eof" in wire.told.events)
    wire.connection.write(b"answer")

    assert await wire.read(6) == b"answer"
    assert len(wire.told.received) == 100
    assert "lost" not in wire.told.events


@for_all_sockets
async def test_nothing_is_read_while_a_pause_reason_is_set(wire: ConnectionWithPeer) -> None:
    wire.connection.pause(PauseReason.PEER_BACKPRESSURE)
    await wire.send(random_frame(100))
    wire.connection.write(b"x")
    assert await wire.read(1) == b"x"  # the loop has polled its sockets

    before = len(wire.told.received)
    wire.connection.resume(PauseReason.PEER_BACKPRESSURE)

    await wait_until(lambda: len(wire.told.received) == 100)
    assert before == 0


@for_all_sockets
async def test_a_reset_by_the_peer_ends_the_connection_with_its_error(wire: ConnectionWithPeer) -> None:
    wire.will_reset()
    wire.peer.close()

    await wire.told.lost.wait()

    assert isinstance(wire.told.error, ConnectionResetError)
    assert wire.told.events == ["open", "lost"]


@for_all_sockets
async def test_bytes_before_a_reset_are_delivered(wire: ConnectionWithPeer) -> None:
    wire.will_reset()
    wire.send_at_once(random_frame(100))
    wire.peer.close()  # both have arrived when the loop polls its sockets

    await wire.told.lost.wait()

    assert len(wire.told.received) == 100
    assert isinstance(wire.told.error, ConnectionResetError)


@for_all_sockets
async def test_bytes_before_a_reset_are_delivered_after_a_pause(wire: ConnectionWithPeer) -> None:
    wire.connection.pause(PauseReason.PEER_BACKPRESSURE)
    wire.will_reset()
    wire.send_at_once(random_frame(100))
    wire.peer.close()
    await asyncio.sleep(0)

    wire.connection.resume(PauseReason.PEER_BACKPRESSURE)

    await wire.told.lost.wait()
    assert len(wire.told.received) == 100
    assert isinstance(wire.told.error, ConnectionResetError)


@for_all_sockets
async def test_peer_reset_is_detected_while_only_writing(wire: ConnectionWithPeer) -> None:
    wire.connection.pause(PauseReason.PEER_BACKPRESSURE)
    wire.connection.write(os.urandom(MUCH))
    await wait_until(lambda: wire.connection.is_full)

    wire.will_reset()
    wire.peer.close()

    async with asyncio.timeout(20):
        await wire.told.lost.wait()
    assert isinstance(wire.told.error, ConnectionError)


@for_all_sockets
async def test_writing_to_a_closed_peer_ends_the_connection(wire: ConnectionWithPeer) -> None:
    wire.connection.pause(PauseReason.PEER_BACKPRESSURE)  # reading would report the end first
    wire.will_reset()
    wire.peer.close()

    async with asyncio.timeout(20):
        while not wire.told.lost.is_set():
            wire.connection.write(b"x" * 1000)
            await asyncio.sleep(0)

    assert isinstance(wire.told.error, ConnectionError)


@pytest.mark.skipif(not HAS_NATIVE_SOCKETS, reason="nothing is compiled, so there are no native sockets")
@pytest.mark.parametrize("speaks", [PlainPeer, TlsPeer])
async def test_an_ended_socket_is_freed_without_the_garbage_collector(speaks: type[PlainPeer | TlsPeer]) -> None:
    made = await connect_with_peer(attach_natively, speaks())
    has_ended = made.told.lost
    made.connection.write(b"x")
    assert await made.read(1) == b"x"
    made.peer.close()
    await made.told.ended.wait()
    made.connection.close()
    await has_ended.wait()
    told = weakref.ref(made.told)

    gc.disable()
    try:
        made.connection.forget()
        del made
        await asyncio.sleep(0)  # the loop still references the last call
        await asyncio.sleep(0)
        assert told() is None
    finally:
        gc.enable()
