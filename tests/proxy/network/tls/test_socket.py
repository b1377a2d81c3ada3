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
    proxy_and_peer_contexts,
    random_frame,
    run_with_native_tls_sockets,
    run_with_tls_sockets,
    wait_until,
)

MUCH = 3 << 20
A_TURN_OPENS = 128 * 1024
THROUGH_TLS_AT_ONCE = 52 * 1024


@run_with_tls_sockets
async def test_all_bytes_before_an_immediate_tls_close_are_delivered(wire: ConnectionWithPeer) -> None:
    data = random_frame(MUCH)
    wire.told.answer = lambda _data: pause_for_one_loop_iteration(wire)

    await wire.send(data)
    wire.peer.shutdown(socket.SHUT_WR)  # closing with an unread session ticket would reset the connection

    await wire.told.ended.wait()
    assert wire.told.received == data


def pause_for_one_loop_iteration(wire: ConnectionWithPeer) -> None:
    wire.connection.pause(PauseReason.PEER_BACKPRESSURE)
    asyncio.get_running_loop().call_soon(wire.connection.resume, PauseReason.PEER_BACKPRESSURE)


@run_with_tls_sockets
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


@run_with_tls_sockets
async def test_writing_still_works_after_tls_close_alert(wire: ConnectionWithPeer) -> None:
    assert isinstance(wire.speaks, TlsPeer)
    ciphertext = wire.speaks.ciphertext(random_frame(100))
    with pytest.raises(ssl.SSLWantReadError):
        wire.speaks.tls.unwrap()
    await wire.send_raw(ciphertext + wire.speaks.outgoing.read())

    await wire.told.ended.wait()
    wire.connection.write(b"answer")

    assert await wire.read(6) == b"answer"
    assert len(wire.told.received) == 100
    assert wire.told.events == ["open", "eof"]


@run_with_tls_sockets
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


@run_with_tls_sockets
async def test_undecryptable_record_ends_connection_after_earlier_records_are_delivered(
    wire: ConnectionWithPeer,
) -> None:
    good, broken = wire.speaks.ciphertext(random_frame(1_000)), bytearray(wire.speaks.ciphertext(random_frame(1_000)))
    broken[-1] ^= 1

    await wire.send_raw(good + broken)

    await wire.told.lost.wait()
    assert isinstance(wire.told.error, ssl.SSLError)
    assert len(wire.told.received) == 1_000
    with pytest.raises(ssl.SSLError, match="bad record mac"):  # the peer receives an alert
        await wire.read(1)


@run_with_tls_sockets
async def test_plaintext_after_the_handshake_ends_the_connection(wire: ConnectionWithPeer) -> None:
    await wire.send_raw(random_frame(100))

    await wire.told.lost.wait()
    assert isinstance(wire.told.error, ssl.SSLError)
    assert wire.told.received == b""


@run_with_tls_sockets
async def test_tls_data_is_decrypted_when_it_arrives_byte_by_byte(wire: ConnectionWithPeer) -> None:
    data = random_frame(300)

    for byte in wire.speaks.ciphertext(data):
        await wire.send_raw(bytes([byte]))
        await asyncio.sleep(0)

    await wait_until(lambda: len(wire.told.received) == len(data))
    assert wire.told.received == data


@run_with_native_tls_sockets
async def test_bytes_decrypted_per_loop_iteration_are_bounded(wire: ConnectionWithPeer) -> None:
    handed: list[int] = []
    in_turn = 0

    def count_bytes_of_iteration(data: bytes) -> None:
        nonlocal in_turn
        if in_turn == 0:
            asyncio.get_running_loop().call_soon(end_iteration)
        in_turn += len(data)

    def end_iteration() -> None:
        nonlocal in_turn
        handed.append(in_turn)
        in_turn = 0

    wire.told.answer = count_bytes_of_iteration
    data = random_frame(MUCH)

    await wire.send(data)

    await wait_until(lambda: len(wire.told.received) == MUCH)
    await wait_until(lambda: in_turn == 0)
    assert sum(handed) == MUCH
    assert max(handed) <= A_TURN_OPENS


@run_with_tls_sockets
async def test_small_parts_are_sent_as_one_tls_record(wire: ConnectionWithPeer) -> None:
    wire.connection.write_parts([b"a", b"b" * 100, bytearray(b"c")])

    ciphertext, decrypted_bytes = b"", b""
    async with asyncio.timeout(20):
        while not decrypted_bytes:
            piece = await asyncio.get_running_loop().sock_recv(wire.peer, 1 << 16)
            ciphertext, decrypted_bytes = ciphertext + piece, wire.speaks.decrypted_bytes(piece)

    assert decrypted_bytes == b"a" + b"b" * 100 + b"c"
    assert count_tls_records(ciphertext) == proxy_and_peer_contexts()[0].num_tickets + 1


def count_tls_records(ciphertext: bytes) -> int:
    """Count the TLS records: each has its length after its kind and version (RFC 8446, 5.1)."""
    at, count = 0, 0
    while at < len(ciphertext):
        at += 5 + int.from_bytes(ciphertext[at + 3 : at + 5])
        count += 1
    assert at == len(ciphertext)
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
            await theirs.run_handshake(peer)
            data = os.urandom(100)
            await loop.sock_sendall(peer, theirs.ciphertext(data))
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


class TlsInputPeakRecorder:
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


class ConnectionAndTransportStub:
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
    theirs, ends = TlsPeer(), ConnectionAndTransportStub()
    with ours, peer:
        shaking = asyncio.create_task(tls_handshake.handshake_with_client(ours, proxy_and_peer_contexts()[0]))
        await theirs.run_handshake(peer)
        handshake = await shaking
        theirs.decrypted_bytes(await asyncio.get_running_loop().sock_recv(peer, 1 << 16))  # session tickets
    watched = TlsInputPeakRecorder(handshake.incoming)
    watching = tls_handshake.Handshake(handshake.tls, cast(ssl.MemoryBIO, watched), handshake.outgoing)
    ciphertext = new_encrypted_buffer()
    behind_tls = TlsSocket(watching, cast(Connection, ends), ciphertext)
    behind_tls.connection_made(cast(SocketTransport, ends))

    data = os.urandom(MUCH)
    encrypted_bytes = theirs.ciphertext(data)
    for at in range(0, len(encrypted_bytes), len(ciphertext)):
        piece = encrypted_bytes[at : at + len(ciphertext)]
        behind_tls.get_buffer(-1)[: len(piece)] = piece
        behind_tls.buffer_updated(len(piece))
    behind_tls.write(data)

    assert ends.received == MUCH
    assert 0 < watched.most <= THROUGH_TLS_AT_ONCE
    assert max(map(len, ends.sent)) <= THROUGH_TLS_AT_ONCE
    assert theirs.decrypted_bytes(b"".join(ends.sent)) == data
