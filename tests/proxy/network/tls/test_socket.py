"""Tests behavior that only TLS sockets have: close alerts, damaged records, undecrypted bytes. For the behavior of all
sockets, see test_plain_socket.py."""

import asyncio
import os
import socket
import ssl
from typing import cast

import pytest
import uvloop

from sluicegate.proxy.network.tls import handshake as tls_handshake
from sluicegate.proxy.network.tls.socket import SocketTransport, TlsSocket, new_encrypted_buffer
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.pause_reason import PauseReason
from tests.proxy.network.wires import (
    ConnectionWithPeer,
    TlsPeer,
    for_tls_sockets,
    over_native_tls,
    proxy_and_peer_contexts,
    random_frame,
    wait_until,
)

MUCH = 3 << 20
A_TURN_OPENS = 128 * 1024
THROUGH_TLS_AT_ONCE = 52 * 1024


@for_tls_sockets
async def test_all_bytes_before_an_immediate_tls_close_are_delivered(wire: ConnectionWithPeer) -> None:
    data = random_frame(MUCH)
    wire.told.answer = lambda _data: hold_for_a_turn(wire)

    await wire.send(data)
    wire.peer.shutdown(socket.SHUT_WR)  # closing with an unread session ticket would reset the connection

    await wire.told.ended.wait()
    assert wire.told.received == data


def hold_for_a_turn(wire: ConnectionWithPeer) -> None:
    wire.connection.pause(PauseReason.PEER_BACKPRESSURE)
    asyncio.get_running_loop().call_soon(wire.connection.resume, PauseReason.PEER_BACKPRESSURE)


@for_tls_sockets
async def test_buffered_bytes_are_delivered_before_eof(wire: ConnectionWithPeer) -> None:
    wire.connection.pause(PauseReason.PEER_BACKPRESSURE)
    await wire.send(random_frame(5_000))
    wire.peer.shutdown(socket.SHUT_WR)
    await asyncio.sleep(0)
    before = len(wire.told.received)

    wire.connection.resume(PauseReason.PEER_BACKPRESSURE)

    await wire.told.ended.wait()
    assert len(wire.told.received) == 5_000
    assert before == 0
    assert "lost" not in wire.told.events


@for_tls_sockets
async def test_writing_still_works_after_tls_close_alert(wire: ConnectionWithPeer) -> None:
    assert isinstance(wire.speaks, TlsPeer)
    encrypted = wire.speaks.encrypted(random_frame(100))
    with pytest.raises(ssl.SSLWantReadError):
        wire.speaks.tls.unwrap()
    await wire.send_raw(encrypted + wire.speaks.outgoing.read())

    await wire.told.ended.wait()
    wire.connection.write(b"answer")

    assert await wire.read(6) == b"answer"
    assert len(wire.told.received) == 100
    assert wire.told.events == ["open", "eof"]


@for_tls_sockets
async def test_close_sends_tls_alert_and_discards_further_input(wire: ConnectionWithPeer) -> None:
    wire.connection.write(b"the last")
    wire.connection.close()

    assert await wire.read(100) == b"the last"
    assert wire.speaks.has_ended
    await wire.send(random_frame(200_000))
    assert "lost" not in wire.told.events
    wire.peer.shutdown(socket.SHUT_WR)

    await wire.told.lost.wait()
    assert wire.told.error is None
    assert wire.told.received == b""


@for_tls_sockets
async def test_undecryptable_record_ends_connection_after_earlier_records_are_delivered(
    wire: ConnectionWithPeer,
) -> None:
    good, broken = wire.speaks.encrypted(random_frame(1_000)), bytearray(wire.speaks.encrypted(random_frame(1_000)))
    broken[-1] ^= 1

    await wire.send_raw(good + broken)

    await wire.told.lost.wait()
    assert isinstance(wire.told.error, ssl.SSLError)
    assert len(wire.told.received) == 1_000
    with pytest.raises(ssl.SSLError, match="bad record mac"):  # the peer receives an alert
        await wire.read(1)


@for_tls_sockets
async def test_plaintext_after_the_handshake_ends_the_connection(wire: ConnectionWithPeer) -> None:
    await wire.send_raw(random_frame(100))

    await wire.told.lost.wait()
    assert isinstance(wire.told.error, ssl.SSLError)
    assert wire.told.received == b""


@for_tls_sockets
async def test_tls_data_is_decrypted_when_it_arrives_byte_by_byte(wire: ConnectionWithPeer) -> None:
    data = random_frame(300)

    for byte in wire.speaks.encrypted(data):
        await wire.send_raw(bytes([byte]))
        await asyncio.sleep(0)

    await wait_until(lambda: len(wire.told.received) == len(data))
    assert wire.told.received == data


@over_native_tls
async def test_bytes_decrypted_per_loop_iteration_are_bounded(wire: ConnectionWithPeer) -> None:
    handed: list[int] = []
    in_turn = 0

    def count_bytes_of_turn(data: bytes) -> None:
        nonlocal in_turn
        if in_turn == 0:
            asyncio.get_running_loop().call_soon(end_turn)
        in_turn += len(data)

    def end_turn() -> None:
        nonlocal in_turn
        handed.append(in_turn)
        in_turn = 0

    wire.told.answer = count_bytes_of_turn
    data = random_frame(MUCH)

    await wire.send(data)

    await wait_until(lambda: len(wire.told.received) == MUCH)
    await wait_until(lambda: in_turn == 0)
    assert sum(handed) == MUCH
    assert max(handed) <= A_TURN_OPENS


@for_tls_sockets
async def test_small_parts_are_sent_as_one_tls_record(wire: ConnectionWithPeer) -> None:
    wire.connection.write_parts([b"a", b"b" * 100, bytearray(b"c")])

    encrypted, opened = b"", b""
    async with asyncio.timeout(20):
        while not opened:
            piece = await asyncio.get_running_loop().sock_recv(wire.peer, 1 << 16)
            encrypted, opened = encrypted + piece, wire.speaks.opened(piece)

    assert opened == b"a" + b"b" * 100 + b"c"
    assert records_in(encrypted) == proxy_and_peer_contexts()[0].num_tickets + 1


def records_in(encrypted: bytes) -> int:
    """Count the TLS records: each has its length after its kind and version (RFC 8446, 5.1)."""
    at, count = 0, 0
    while at < len(encrypted):
        at += 5 + int.from_bytes(encrypted[at + 3 : at + 5])
        count += 1
    assert at == len(encrypted)
    return count


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_bytes_right_after_the_handshake_are_delivered(run: object, version: ssl.TLSVersion) -> None:
    async def run_connection() -> None:
        loop = asyncio.get_running_loop()
        ours, peer = socket.socketpair()
        ours.setblocking(False)
        peer.setblocking(False)
        theirs = TlsPeer()
        theirs.tls.context.maximum_version = version
        try:
            shaking = loop.create_task(tls_handshake.handshake_with_client(ours, proxy_and_peer_contexts()[0]))
            await theirs.shake_hands(peer)
            data = os.urandom(100)
            await loop.sock_sendall(peer, theirs.encrypted(data))
            handshake = await shaking
            while not handshake.incoming.pending and not handshake.tls.pending():
                handshake.incoming.write(await loop.sock_recv(ours, 1 << 16))
            assert handshake.tls.read(100) == data
        finally:
            theirs.tls.context.maximum_version = ssl.TLSVersion.MAXIMUM_SUPPORTED
            ours.close()
            peer.close()

    run(run_connection())


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_client_gets_a_tls_alert_after_a_failed_handshake(run: object) -> None:
    async def run_connection() -> None:
        ours, peer = socket.socketpair()
        ours.setblocking(False)
        peer.setblocking(False)
        with ours, peer:
            shaking = asyncio.create_task(tls_handshake.handshake_with_client(ours, proxy_and_peer_contexts()[0]))
            await asyncio.get_running_loop().sock_sendall(peer, bytes.fromhex("16 0301 0005") + b"hello")
            with pytest.raises(ssl.SSLError):
                await shaking
            alert = await asyncio.get_running_loop().sock_recv(peer, 100)
        assert alert[0] == 21  # the record type of an alert (RFC 5246, 6.2.1)

    run(run_connection())


class WatchedTlsInput:
    """Wraps TLS input and records the largest number of pending bytes."""

    def __init__(self, incoming: ssl.MemoryBIO) -> None:
        self._incoming = incoming
        self.most = 0

    @property
    def pending(self) -> int:
        return self._incoming.pending

    def write(self, data: memoryview) -> None:
        self._incoming.write(data)
        self.most = max(self.most, self._incoming.pending)


class TlsConnectionPair:
    """A connection above TLS, and a socket below it."""

    def __init__(self) -> None:
        self.room = memoryview(bytearray(1 << 18))
        self.received = 0
        self.sent: list[bytes] = []

    def connection_made(self, transport: object) -> None: ...

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self.room

    def buffer_updated(self, nbytes: int) -> None:
        self.received += nbytes

    def writelines(self, parts: list[bytes]) -> None:
        self.sent += parts


async def test_bytes_per_tls_call_are_bounded() -> None:
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    peer.setblocking(False)
    theirs, ends = TlsPeer(), TlsConnectionPair()
    with ours, peer:
        shaking = asyncio.create_task(tls_handshake.handshake_with_client(ours, proxy_and_peer_contexts()[0]))
        await theirs.shake_hands(peer)
        handshake = await shaking
        theirs.opened(await asyncio.get_running_loop().sock_recv(peer, 1 << 16))  # session tickets
    watched = WatchedTlsInput(handshake.incoming)
    watching = tls_handshake.Handshake(handshake.tls, cast(ssl.MemoryBIO, watched), handshake.outgoing)
    encrypted = new_encrypted_buffer()
    behind_tls = TlsSocket(watching, cast(Connection, ends), encrypted)
    behind_tls.connection_made(cast(SocketTransport, ends))

    data = os.urandom(MUCH)
    encrypted_bytes = theirs.encrypted(data)
    for at in range(0, len(encrypted_bytes), len(encrypted)):
        piece = encrypted_bytes[at : at + len(encrypted)]
        behind_tls.get_buffer(-1)[: len(piece)] = piece
        behind_tls.buffer_updated(len(piece))
    behind_tls.write(data)

    assert ends.received == MUCH
    assert 0 < watched.most <= THROUGH_TLS_AT_ONCE
    assert max(map(len, ends.sent)) <= THROUGH_TLS_AT_ONCE
    assert theirs.opened(b"".join(ends.sent)) == data
