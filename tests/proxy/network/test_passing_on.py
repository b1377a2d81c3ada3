"""Bytes that the fast path forwards from the read buffer arrive complete and in order at a slow broker."""

import asyncio
import os
import socket
import struct
from collections.abc import Callable, Coroutine

import pytest
import uvloop

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.native_sockets import native_sockets
from sluicegate.proxy.network.upstream import Dialler
from sluicegate.proxy.server.assembly import Runtime
from sluicegate.proxy.session.handlers.arrival import Route
from sluicegate.proxy.session.handlers.session import Session
from sluicegate.proxy.session.outlets import PeerInfo
from tests.proxy.session.playbook import proxy_in

LIST_GROUPS = 16
FRAMES = 900
CLIENT_ID_BYTES = 20_000


def unparsed_request(number: int) -> bytes:
    """Return a unique request of an API that the proxy does not parse."""
    name = os.urandom(CLIENT_ID_BYTES // 2).hex().encode()
    request = struct.pack(">hhih", LIST_GROUPS, 0, number, len(name)) + name
    return struct.pack(">i", len(request)) + request


async def receive_exactly(peer: socket.socket, count: int) -> bytes:
    loop, got = asyncio.get_running_loop(), bytearray()
    while len(got) < count:
        got += await loop.sock_recv(peer, min(count - len(got), 1 << 16))
    return bytes(got)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_forwarded_bytes_reach_a_slow_broker_complete_and_in_order(
    run: Callable[[Coroutine[None, None, None]], None],
) -> None:
    async def close_both_sides() -> None:
        loop = asyncio.get_running_loop()
        sockets = native_sockets(loop)
        if sockets is None:
            pytest.skip("nothing is compiled, so there are no native sockets")
        brokers = socket.create_server(("127.0.0.1", 0))
        address = HostPort(*brokers.getsockname())
        runtime = Runtime(
            call_soon=loop.call_soon,
            call_later=loop.call_later,
            from_thread=loop.call_soon_threadsafe,
            dial=Dialler(None, 5, sockets).dial,
            describe_client=lambda _: PeerInfo("client", "own"),
            describe_broker=lambda _: PeerInfo("broker", "own"),
            why_lost=lambda _error: None,
        )
        parts = proxy_in(runtime, {})
        session = Session(parts.dependencies, lambda _: Route("bootstrap", lambda _: (address,)))
        client, ours = socket.socketpair()
        for each in (client, ours, brokers):
            each.setblocking(False)
        sockets.attach(ours, session.client)
        sent = [unparsed_request(number) for number in range(FRAMES)]

        async with asyncio.timeout(60):
            sending = loop.create_task(loop.sock_sendall(client, b"".join(sent)))
            broker, _ = await loop.sock_accept(brokers)
            broker.setblocking(False)
            while session.broker.unsent_bytes == 0:  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0.001)
            assert await receive_exactly(broker, sum(map(len, sent))) == b"".join(sent)
            await sending

        lane = parts.dependencies.path_counts
        assert lane is not None
        assert lane.by_api()[LIST_GROUPS] > FRAMES // 4  # the buffer contained the other frames only in part
        for each in (client, broker, brokers):
            each.close()
        while not session.client.closed or not session.broker.closed:  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0.001)

    run(close_both_sides())
