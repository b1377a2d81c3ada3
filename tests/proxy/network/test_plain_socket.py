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
from tests.proxy.network.wires import Plain, Tls, Wire, framed, natively, of_all, until, wired

MUCH = 8 << 20


@of_all
async def test_bytes_come_in_as_they_were_sent(wire: Wire) -> None:
    data = framed(MUCH)

    await wire.send(data)

    await until(lambda: len(wire.told.received) == MUCH)
    assert wire.told.received == data
    assert wire.connection.bytes_in == MUCH


@of_all
async def test_parts_arrive_in_order(wire: Wire) -> None:
    parts = [os.urandom(size) for size in (1, 0, 5, 70_000, 3, 200_000)] + [b"%d" % i for i in range(300)]

    for part in parts[:3]:
        wire.connection.write(part)
    wire.connection.write_parts([bytearray(parts[3]), memoryview(parts[4]), parts[5], b""])
    for part in parts[6:]:
        wire.connection.write(memoryview(part))

    whole = b"".join(parts)
    assert await wire.read(len(whole)) == whole


@of_all
async def test_writes_within_a_read_arrive_in_order(wire: Wire) -> None:
    def echo_in_two(data: bytes) -> None:
        wire.connection.write(data[:1])
        wire.connection.write(data[1:])

    wire.told.answer = echo_in_two
    data = framed(300_000)

    async with asyncio.TaskGroup() as both:
        both.create_task(wire.send(data))
        echo = both.create_task(wire.read(len(data)))

    assert echo.result() == data


@of_all
async def test_a_peer_that_does_not_read_fills_what_is_written_to(wire: Wire) -> None:
    data = os.urandom(MUCH)

    for at in range(0, MUCH, 100_000):
        wire.connection.write(data[at : at + 100_000])

    await until(lambda: wire.connection.is_full)
    assert wire.told.events[-1] == "full"
    assert 0 < wire.connection.unsent_bytes < MUCH
    assert not wire.connection.has_sent_all

    assert await wire.read(MUCH) == data  # all of it arrives when the peer reads
    await until(lambda: wire.connection.has_sent_all)
    assert wire.told.events[-1] == "drained"
    assert wire.told.events.count("full") == wire.told.events.count("drained")


@pytest.mark.long
@of_all
async def test_a_close_sends_what_was_written(wire: Wire) -> None:
    data = os.urandom(MUCH)
    wire.connection.write(data)

    wire.connection.close()
    wire.connection.write(b"nothing more")

    assert await wire.read(MUCH + 1) == data
    await wire.told.lost.wait()
    assert wire.told.error is None


@of_all
async def test_an_abort_sends_nothing_more(wire: Wire) -> None:
    wire.connection.write(os.urandom(MUCH))

    wire.connection.abort()
    wire.connection.abort()

    await wire.told.lost.wait()
    with suppress(ConnectionResetError):
        assert len(await wire.read(MUCH)) < MUCH
    assert wire.told.events.count("lost") == 1
    assert wire.connection.has_sent_all  # no output is left


@of_all
async def test_written_bytes_are_sent_before_the_end_and_responses_are_still_read(wire: Wire) -> None:
    data = os.urandom(MUCH)
    wire.connection.write(data)

    wire.connection.write_eof()

    assert await wire.read(MUCH + 1) == data
    await wire.send(framed(100))
    await until(lambda: len(wire.told.received) == 100)
    assert "lost" not in wire.told.events


@of_all
async def test_the_peers_end_is_told_and_it_can_still_be_answered(wire: Wire) -> None:
    await wire.send(framed(100))
    wire.peer.shutdown(socket.SHUT_WR)

    await until(lambda: "eof" in wire.told.events)
    wire.connection.write(b"answer")

    assert await wire.read(6) == b"answer"
    assert len(wire.told.received) == 100
    assert "lost" not in wire.told.events


@of_all
async def test_nothing_is_read_while_something_holds(wire: Wire) -> None:
    wire.connection.pause(PauseReason.PEER_BACKPRESSURE)
    await wire.send(framed(100))
    wire.connection.write(b"x")
    assert await wire.read(1) == b"x"  # the loop has polled its sockets

    before = len(wire.told.received)
    wire.connection.resume(PauseReason.PEER_BACKPRESSURE)

    await until(lambda: len(wire.told.received) == 100)
    assert before == 0


@of_all
async def test_a_peer_that_resets_ends_it_with_the_reason(wire: Wire) -> None:
    wire.will_reset()
    wire.peer.close()

    await wire.told.lost.wait()

    assert isinstance(wire.told.error, ConnectionResetError)
    assert wire.told.events == ["open", "lost"]


@of_all
async def test_a_reset_behind_bytes_that_came_is_seen_behind_them(wire: Wire) -> None:
    wire.will_reset()
    wire.send_at_once(framed(100))
    wire.peer.close()  # both have arrived when the loop polls its sockets

    await wire.told.lost.wait()

    assert len(wire.told.received) == 100
    assert isinstance(wire.told.error, ConnectionResetError)


@of_all
async def test_a_reset_behind_bytes_that_came_while_something_held(wire: Wire) -> None:
    wire.connection.pause(PauseReason.PEER_BACKPRESSURE)
    wire.will_reset()
    wire.send_at_once(framed(100))
    wire.peer.close()
    await asyncio.sleep(0)

    wire.connection.resume(PauseReason.PEER_BACKPRESSURE)

    await wire.told.lost.wait()
    assert len(wire.told.received) == 100
    assert isinstance(wire.told.error, ConnectionResetError)


@of_all
async def test_a_reset_is_seen_by_who_only_writes(wire: Wire) -> None:
    wire.connection.pause(PauseReason.PEER_BACKPRESSURE)
    wire.connection.write(os.urandom(MUCH))
    await until(lambda: wire.connection.is_full)

    wire.will_reset()
    wire.peer.close()

    async with asyncio.timeout(20):
        await wire.told.lost.wait()
    assert isinstance(wire.told.error, ConnectionError)


@of_all
async def test_writing_to_a_peer_that_is_gone_ends_it(wire: Wire) -> None:
    wire.connection.pause(PauseReason.PEER_BACKPRESSURE)  # reading would report the end first
    wire.will_reset()
    wire.peer.close()

    async with asyncio.timeout(20):
        while not wire.told.lost.is_set():
            wire.connection.write(b"x" * 1000)
            await asyncio.sleep(0)

    assert isinstance(wire.told.error, ConnectionError)


@pytest.mark.skipif(not HAS_NATIVE_SOCKETS, reason="nothing is compiled, so there are no native sockets")
@pytest.mark.parametrize("speaks", [Plain, Tls])
async def test_nothing_is_left_of_one_that_has_ended(speaks: type[Plain | Tls]) -> None:
    made = await wired(natively, speaks())
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
