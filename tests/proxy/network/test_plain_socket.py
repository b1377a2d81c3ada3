"""What a native socket does is what an event loop's own transport does: each story is told of both."""

import asyncio
import gc
import os
import socket
import struct
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress

import pytest
import uvloop

from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.frame_pool import FramePool
from sluicegate.protocol.framing import Disposition, FrameReader
from sluicegate.proxy.network.event_loop_protocol import as_protocol
from sluicegate.proxy.network.native_sockets import HAS_NATIVE_SOCKETS, native_sockets
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.hold import Hold
from sluicegate.proxy.session.outlets import Introduced, LoopCalls
from sluicegate.proxy.session.read_buffer import new_shared_buffer

if HAS_NATIVE_SOCKETS:
    from sluicegate.proxy.network.giving_way import GivingWay

pytestmark = pytest.mark.skipif(not HAS_NATIVE_SOCKETS, reason="nothing is compiled, so there are no native sockets")
MUCH = 8 << 20


class Told:
    """Owner and reader's handler of one connection: writes down what it is told."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.events: list[str] = []
        self.ended = asyncio.Event()
        self.lost = asyncio.Event()
        self.error: Exception | None = None
        self.answer: Callable[[bytes], None] = lambda _data: None

    def on_head(self, size: int, head: bytes) -> Disposition:
        return Disposition.STREAM

    def on_pass(self, data: memoryview) -> None:
        self.received += data
        self.answer(bytes(data))

    def on_room(self, more: int, size: int) -> None: ...

    def on_frame(self, frame: bytearray) -> None: ...

    def on_open(self, connection: Connection) -> None:
        self.events.append("open")

    def on_bytes_taken(self, connection: Connection) -> None: ...

    def on_sender_error(self, connection: Connection, error: SenderError) -> None:
        self.events.append(str(error))

    def on_our_fault(self, connection: Connection, error: Exception) -> None:
        self.events.append(repr(error))

    def on_eof(self, connection: Connection) -> None:
        self.events.append("eof")
        self.ended.set()

    def on_lost(self, connection: Connection, error: Exception | None) -> None:
        self.events.append("lost")
        self.error = error
        self.lost.set()

    def on_full(self, connection: Connection, full: bool) -> None:
        self.events.append("full" if full else "drained")


class Wire:
    """One connection of ours, and its peer as a plain socket."""

    def __init__(self, peer: socket.socket, connection: Connection, told: Told) -> None:
        self.peer = peer
        self.connection = connection
        self.told = told

    async def read(self, count: int) -> bytes:
        """What the peer reads: so many bytes, fewer where the end comes first."""
        loop, got = asyncio.get_running_loop(), bytearray()
        async with asyncio.timeout(20):
            while len(got) < count and (piece := await loop.sock_recv(self.peer, min(count - len(got), 1 << 16))):
                got += piece
        return bytes(got)

    async def send(self, data: bytes) -> None:
        """What the peer writes."""
        async with asyncio.timeout(20):
            await asyncio.get_running_loop().sock_sendall(self.peer, data)


async def natively(ours: socket.socket, connection: Connection) -> None:
    sockets = native_sockets(asyncio.get_running_loop())
    assert sockets is not None
    sockets.attach_client(ours, connection)


async def by_the_loop(ours: socket.socket, connection: Connection) -> None:
    await asyncio.get_running_loop().connect_accepted_socket(lambda: as_protocol(connection), ours)


async def by_the_loop_giving_way(ours: socket.socket, connection: Connection) -> None:
    protocol = as_protocol(connection, GivingWay())
    await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, ours)


Attach = Callable[[socket.socket, Connection], Coroutine[None, None, None]]


async def wired(attach: Attach) -> Wire:
    loop, told = asyncio.get_running_loop(), Told()
    with socket.create_server(("127.0.0.1", 0)) as server:
        peer = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    peer.setblocking(False)
    ours.setblocking(False)
    reader = FrameReader(told, 8, 1 << 30, FramePool(loop.call_soon))
    calls = LoopCalls(loop.call_soon, loop.call_later, lambda step, _: loop.call_soon(step))
    connection = Connection(told, reader, new_shared_buffer(), lambda _: Introduced("peer", "own"), calls)
    await attach(ours, connection)
    return Wire(peer, connection, told)


Story = Callable[[Wire], Coroutine[None, None, None]]


def of_both(story: Story) -> Callable[..., None]:
    """A test that tells a story of a native socket, on both kinds of loops, and of uvloop's own."""

    async def told_of(attach: Attach) -> None:
        wire = await wired(attach)
        await story(wire)
        wire.peer.close()
        wire.connection.abort()
        await wire.told.lost.wait()

    kinds = {
        "native, asyncio": (asyncio.run, natively),
        "native, uvloop": (uvloop.run, natively),
        "uvloop's": (uvloop.run, by_the_loop),
        "uvloop's, giving way": (uvloop.run, by_the_loop_giving_way),
    }

    @pytest.mark.parametrize(("run", "attach"), kinds.values(), ids=kinds)
    def test(run: Callable[[Coroutine[None, None, None]], None], attach: Attach) -> None:
        run(told_of(attach))

    return test


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110  # of what nobody is told
            await asyncio.sleep(0.001)


def framed(count: int) -> bytes:
    return struct.pack(">i", count - 4) + os.urandom(count - 4)


@of_both
async def test_bytes_come_in_as_they_were_sent(wire: Wire) -> None:
    data = framed(MUCH)

    await wire.send(data)

    await until(lambda: len(wire.told.received) == MUCH)
    assert wire.told.received == data
    assert wire.connection.bytes_in == MUCH


@of_both
async def test_what_is_written_in_parts_arrives_in_order(wire: Wire) -> None:
    parts = [os.urandom(size) for size in (1, 0, 5, 70_000, 3, 200_000)] + [b"%d" % i for i in range(300)]

    for part in parts[:3]:
        wire.connection.write(part)
    wire.connection.write_parts([bytearray(parts[3]), memoryview(parts[4]), parts[5], b""])
    for part in parts[6:]:
        wire.connection.write(memoryview(part))

    whole = b"".join(parts)
    assert await wire.read(len(whole)) == whole


@of_both
async def test_what_is_written_for_what_came_arrives_in_order(wire: Wire) -> None:
    def echo_in_two(data: bytes) -> None:
        wire.connection.write(data[:1])
        wire.connection.write(data[1:])

    wire.told.answer = echo_in_two
    data = framed(300_000)

    async with asyncio.TaskGroup() as both:
        both.create_task(wire.send(data))
        echo = both.create_task(wire.read(len(data)))

    assert echo.result() == data


@of_both
async def test_a_peer_that_does_not_read_fills_what_is_written_to(wire: Wire) -> None:
    data = os.urandom(MUCH)

    for at in range(0, MUCH, 100_000):
        wire.connection.write(data[at : at + 100_000])

    await until(lambda: wire.connection.is_full)
    assert wire.told.events[-1] == "full"
    assert 0 < wire.connection.unsent_bytes < MUCH
    assert not wire.connection.has_sent_all

    assert await wire.read(MUCH) == data  # and when it reads, all of it comes
    await until(lambda: wire.connection.has_sent_all)
    assert wire.told.events[-1] == "drained"
    assert wire.told.events.count("full") == wire.told.events.count("drained")


@of_both
async def test_a_close_sends_what_was_written(wire: Wire) -> None:
    data = os.urandom(MUCH)
    wire.connection.write(data)

    wire.connection.close()
    wire.connection.write(b"nothing more")

    assert await wire.read(MUCH + 1) == data
    await wire.told.lost.wait()
    assert wire.told.error is None


@of_both
async def test_an_abort_sends_nothing_more(wire: Wire) -> None:
    wire.connection.write(os.urandom(MUCH))

    wire.connection.abort()
    wire.connection.abort()

    await wire.told.lost.wait()
    with suppress(ConnectionResetError):
        assert len(await wire.read(MUCH)) < MUCH
    assert wire.told.events.count("lost") == 1
    assert wire.connection.has_sent_all  # nothing waits any more


@of_both
async def test_what_was_written_comes_before_the_end_and_answers_still_come_back(wire: Wire) -> None:
    data = os.urandom(MUCH)
    wire.connection.write(data)

    wire.connection.write_eof()

    assert await wire.read(MUCH + 1) == data
    await wire.send(framed(100))
    await until(lambda: len(wire.told.received) == 100)
    assert "lost" not in wire.told.events


@of_both
async def test_the_peers_end_is_told_and_it_can_still_be_answered(wire: Wire) -> None:
    await wire.send(framed(100))
    wire.peer.shutdown(socket.SHUT_WR)

    await until(lambda: "eof" in wire.told.events)
    wire.connection.write(b"answer")

    assert await wire.read(6) == b"answer"
    assert len(wire.told.received) == 100
    assert "lost" not in wire.told.events


@of_both
async def test_nothing_is_read_while_something_holds(wire: Wire) -> None:
    wire.connection.hold(Hold.OTHER_SIDE_FULL)
    await wire.send(framed(100))
    wire.connection.write(b"x")
    assert await wire.read(1) == b"x"  # the loop has looked at its sockets

    before = len(wire.told.received)
    wire.connection.release(Hold.OTHER_SIDE_FULL)

    await until(lambda: len(wire.told.received) == 100)
    assert before == 0


@of_both
async def test_a_peer_that_resets_ends_it_with_the_reason(wire: Wire) -> None:
    wire.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.peer.close()

    await wire.told.lost.wait()

    assert isinstance(wire.told.error, ConnectionResetError)
    assert wire.told.events == ["open", "lost"]


@of_both
async def test_a_reset_behind_bytes_that_came_is_seen_behind_them(wire: Wire) -> None:
    wire.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.peer.send(framed(100))
    wire.peer.close()  # both are there when the loop looks at its sockets

    await wire.told.lost.wait()

    assert len(wire.told.received) == 100
    assert isinstance(wire.told.error, ConnectionResetError)


@of_both
async def test_a_reset_behind_bytes_that_came_while_something_held(wire: Wire) -> None:
    wire.connection.hold(Hold.OTHER_SIDE_FULL)
    wire.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.peer.send(framed(100))
    wire.peer.close()
    await asyncio.sleep(0)

    wire.connection.release(Hold.OTHER_SIDE_FULL)

    await wire.told.lost.wait()
    assert len(wire.told.received) == 100
    assert isinstance(wire.told.error, ConnectionResetError)


@of_both
async def test_a_reset_is_seen_by_who_only_writes(wire: Wire) -> None:
    wire.connection.hold(Hold.OTHER_SIDE_FULL)
    wire.connection.write(os.urandom(MUCH))
    await until(lambda: wire.connection.is_full)

    wire.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.peer.close()

    async with asyncio.timeout(20):
        await wire.told.lost.wait()
    assert isinstance(wire.told.error, ConnectionError)


@of_both
async def test_writing_to_a_peer_that_is_gone_ends_it(wire: Wire) -> None:
    wire.connection.hold(Hold.OTHER_SIDE_FULL)  # reading would tell it first
    wire.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.peer.close()

    async with asyncio.timeout(20):
        while not wire.told.lost.is_set():
            wire.connection.write(b"x" * 1000)
            await asyncio.sleep(0)

    assert isinstance(wire.told.error, ConnectionError)


async def test_nothing_is_left_of_one_that_has_ended() -> None:
    made = await wired(natively)
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
        await asyncio.sleep(0)  # the loop still holds the call that told it
        await asyncio.sleep(0)
        assert told() is None
    finally:
        gc.enable()
