"""Provides one connection and its peer over every kind of socket: native sockets, an event loop's own, and TLS over
either."""

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import Callable, Coroutine
from functools import cache

import pytest
import trustme
import uvloop

from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.frame_pool import FramePool
from sluicegate.protocol.framing import Disposition, FrameReader
from sluicegate.proxy.network.native_sockets import HAS_NATIVE_SOCKETS, as_protocol, native_sockets
from sluicegate.proxy.network.tls import handshake as tls_handshake
from sluicegate.proxy.network.tls.socket import TlsSocket, new_encrypted_buffer
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.memory import new_read_buffer
from sluicegate.proxy.session.outlets import LoopCalls, PeerInfo

_PIECE = 1 << 16


class ConnectionEvents:
    """Owner and frame handler of one connection; records all events."""

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

    def on_internal_error(self, connection: Connection, error: Exception) -> None:
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


class PlainPeer:
    """A peer without TLS."""

    async def shake_hands(self, peer: socket.socket) -> None: ...

    def encrypted(self, data: bytes) -> bytes:
        """Return the bytes for the wire."""
        return data

    def opened(self, data: bytes) -> bytes:
        """Return the plain bytes."""
        return data

    @property
    def has_ended(self) -> bool:
        """Whether the peer has announced the end of its output before closing the socket."""
        return False


class TlsPeer:
    """A peer with Python's TLS over memory buffers."""

    def __init__(self) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = proxy_and_peer_contexts()[1].wrap_bio(self.incoming, self.outgoing, server_hostname="127.0.0.1")
        self.has_ended = False

    async def shake_hands(self, peer: socket.socket) -> None:
        """Run the handshake. Raises ssl.SSLError."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await loop.sock_sendall(peer, self.outgoing.read())
                self.incoming.write(await loop.sock_recv(peer, _PIECE))
        await loop.sock_sendall(peer, self.outgoing.read())

    def encrypted(self, data: bytes) -> bytes:
        """Return the bytes for the wire."""
        left = memoryview(data)
        while left:
            left = left[self.tls.write(left) :]
        return self.outgoing.read()

    def opened(self, data: bytes) -> bytes:
        """Return the plain bytes."""
        self.incoming.write(data)
        got = bytearray()
        try:
            while piece := self.tls.read(_PIECE):
                got += piece
            self.has_ended = True
        except ssl.SSLWantReadError:
            pass
        return bytes(got)


@cache
def proxy_and_peer_contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the proxy's context and the context of a peer that trusts it."""
    authority = trustme.CA()
    ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.issue_cert("127.0.0.1").configure_cert(ours)
    authority.configure_trust(theirs)
    return ours, theirs


class ConnectionWithPeer:
    """One connection of the proxy, and its peer as a plain socket that may use TLS."""

    def __init__(
        self, peer: socket.socket, speaks: PlainPeer | TlsPeer, connection: Connection, told: ConnectionEvents
    ) -> None:
        self.peer = peer
        self.speaks = speaks
        self.connection = connection
        self.told = told

    async def read(self, count: int) -> bytes:
        """Return the next `count` bytes at the peer, fewer at the end of the stream."""
        loop, got = asyncio.get_running_loop(), bytearray()
        async with asyncio.timeout(20):
            while len(got) < count and not self.speaks.has_ended:
                if not (piece := await loop.sock_recv(self.peer, min(count - len(got), _PIECE))):
                    break
                got += self.speaks.opened(piece)
        return bytes(got)

    async def send(self, data: bytes) -> None:
        """Send bytes from the peer."""
        await self.send_raw(self.speaks.encrypted(data))

    async def send_raw(self, data: bytes) -> None:
        """Send bytes that are already encrypted."""
        async with asyncio.timeout(20):
            await asyncio.get_running_loop().sock_sendall(self.peer, data)

    def send_at_once(self, data: bytes) -> None:
        """Send few bytes from the peer in one call."""
        self.peer.send(self.speaks.encrypted(data))

    def will_reset(self) -> None:
        """Make the peer's close a reset."""
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def attach_natively(ours: socket.socket, protocol: asyncio.BaseProtocol) -> None:
    sockets = native_sockets(asyncio.get_running_loop())
    assert sockets is not None
    sockets.attach(ours, protocol)


async def attach_by_loop(ours: socket.socket, protocol: asyncio.BaseProtocol) -> None:
    await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, ours)


Attach = Callable[[socket.socket, asyncio.BaseProtocol], Coroutine[None, None, None]]


async def connect_with_peer(attach: Attach, speaks: PlainPeer | TlsPeer) -> ConnectionWithPeer:
    loop, told = asyncio.get_running_loop(), ConnectionEvents()
    with socket.create_server(("127.0.0.1", 0)) as server:
        peer = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    peer.setblocking(False)
    ours.setblocking(False)
    reader = FrameReader(told, 8, 1 << 30, FramePool(loop.call_soon))
    calls = LoopCalls(loop.call_soon, loop.call_later, lambda step, _: loop.call_soon(step))
    peer_info = PeerInfo("peer", "own", is_tls=isinstance(speaks, TlsPeer))
    connection = Connection(told, reader, new_read_buffer(), lambda _: peer_info, calls)
    protocol = as_protocol(connection)
    if isinstance(speaks, TlsPeer):
        async with asyncio.TaskGroup() as both:
            both.create_task(speaks.shake_hands(peer))
            handshake = both.create_task(tls_handshake.handshake_with_client(ours, proxy_and_peer_contexts()[0]))
        protocol = as_protocol(TlsSocket(handshake.result(), connection, new_encrypted_buffer()))
    await attach(ours, protocol)
    return ConnectionWithPeer(peer, speaks, connection, told)


Story = Callable[[ConnectionWithPeer], Coroutine[None, None, None]]
_Run = Callable[[Coroutine[None, None, None]], None]
_PLAIN: dict[str, tuple[_Run, Attach, type[PlainPeer | TlsPeer]]] = {
    "native, asyncio": (asyncio.run, attach_natively, PlainPeer),
    "native, uvloop": (uvloop.run, attach_natively, PlainPeer),
    "uvloop's": (uvloop.run, attach_by_loop, PlainPeer),
}
_TLS: dict[str, tuple[_Run, Attach, type[PlainPeer | TlsPeer]]] = {
    "TLS over native, asyncio": (asyncio.run, attach_natively, TlsPeer),
    "TLS over native, uvloop": (uvloop.run, attach_natively, TlsPeer),
    "TLS over uvloop's": (uvloop.run, attach_by_loop, TlsPeer),
}


def for_all_sockets(story: Story) -> Callable[..., None]:
    """Make a test that runs a story with each kind of socket, with and without TLS."""
    return _of({**_PLAIN, **_TLS}, story)


def for_tls_sockets(story: Story) -> Callable[..., None]:
    """Make a test that runs a story with TLS only."""
    return _of(_TLS, story)


def over_native_tls(story: Story) -> Callable[..., None]:
    """Make a test that runs a story with TLS over native sockets only."""
    return _of({kind: told for kind, told in _TLS.items() if told[1] is attach_natively}, story)


def _of(kinds: dict[str, tuple[_Run, Attach, type[PlainPeer | TlsPeer]]], story: Story) -> Callable[..., None]:
    async def events_of_reset(attach: Attach, speaks: type[PlainPeer | TlsPeer]) -> None:
        wire = await connect_with_peer(attach, speaks())
        async with asyncio.timeout(30):
            await story(wire)
            wire.peer.close()
            wire.connection.abort()
            await wire.told.lost.wait()

    could_be = {kind: told for kind, told in kinds.items() if HAS_NATIVE_SOCKETS or told[1] is attach_by_loop}

    @pytest.mark.parametrize(("run", "attach", "speaks"), could_be.values(), ids=could_be)
    def run_on_socket(run: _Run, attach: Attach, speaks: type[PlainPeer | TlsPeer]) -> None:
        run(events_of_reset(attach, speaks))

    return run_on_socket


async def wait_until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0.001)


def random_frame(count: int) -> bytes:
    return struct.pack(">i", count - 4) + os.urandom(count - 4)
