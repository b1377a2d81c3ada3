"""Performs TLS handshakes with clients and brokers, and limits the handshakes in progress.

TLS 1.2 and 1.3 are supported (RFC 5246, 8446), as `sluicegate.proxy.network.tls.contexts` allows. The event loop's own
TLS is not used, because it does not send the TLS alert to a rejected peer. After the handshake,
`sluicegate.proxy.network.tls.socket` handles the data.
"""

import asyncio
import socket
import ssl
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from sluicegate.config.limits import Limits

# Most handshakes send less than this at once. Bytes after the handshake stay in `incoming` for the connection.
_CHUNK_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Handshake:
    """A completed handshake.

    `incoming` contains the bytes from the peer, and `outgoing` the bytes for the peer.
    """

    tls: ssl.SSLObject
    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO


class ClosedWithoutData(ConnectionResetError):
    """The peer closed the connection without sending a byte, as load balancers' TCP health checks do."""


async def handshake_with_client(plain: socket.socket, context: ssl.SSLContext) -> Handshake:
    """Perform a handshake as the server.

    Raises ssl.SSLError and OSError. If the client closed the connection, it raises ConnectionResetError, or
    ClosedWithoutData if the client had sent nothing before.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    return await _completed(plain, Handshake(tls, incoming, outgoing))


async def handshake_with_broker(plain: socket.socket, context: ssl.SSLContext, host: str) -> Handshake:
    """Perform a handshake as the client.

    The broker's certificate must contain the name `host`. Raises the same errors as `handshake_with_client`.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=host)
    return await _completed(plain, Handshake(tls, incoming, outgoing))


async def _completed(plain: socket.socket, begun: Handshake) -> Handshake:
    loop = asyncio.get_running_loop()
    has_received = False
    while True:
        try:
            begun.tls.do_handshake()
        except ssl.SSLWantReadError:
            await _send(plain, begun)
        except ssl.SSLError:
            with suppress(OSError):  # the peer may have closed the connection
                await _send(plain, begun)
            raise
        else:
            await _send(plain, begun)
            return begun
        try:
            chunk = await loop.sock_recv(plain, _CHUNK_BYTES)
            if not chunk:
                raise ConnectionResetError
        except ConnectionResetError:
            if not has_received:
                raise ClosedWithoutData from None
            raise
        has_received = True
        begun.incoming.write(chunk)


async def _send(plain: socket.socket, begun: Handshake) -> None:
    if begun.outgoing.pending:
        await asyncio.get_running_loop().sock_sendall(plain, begun.outgoing.read())


MAX_HANDSHAKES = "limits.max_handshakes"
HANDSHAKE_SECONDS = "limits.handshake_timeout_seconds"

# A new handshake may replace a pending one only after this time.
_PROTECTED_SECONDS = 1.0


class PendingHandshakes:
    """The handshakes in progress on all listeners, oldest first. `seconds` is the time limit for each."""

    def __init__(self, most: int, seconds: float, reached: Counter[str], cut_off: Counter[str]) -> None:
        """`reached` and `cut_off` count handshakes by configuration key.

        `reached` counts those that were cancelled in favour of a new one, and `cut_off` those that timed out.
        """
        self.seconds = seconds
        self._most = most
        self._reached = reached
        self._cut_off = cut_off
        self._began: dict[asyncio.Task[None], float] = {}
        self._ended = asyncio.Event()

    def __len__(self) -> int:
        return len(self._began)

    def add(self, handshake: asyncio.Task[None]) -> None:
        """Add a handshake. It is removed when it ends."""
        self._began[handshake] = monotonic()
        handshake.add_done_callback(self._end)

    async def wait_for_room(self) -> None:
        """Wait until one more handshake may start.

        If none ends, cancel the oldest one that has lasted at least a second. Without this minimum, a rush of
        connections would cancel every handshake.
        """
        while len(self._began) >= self._most:
            self._ended.clear()
            oldest, began = next(iter(self._began.items()))
            left = began + _PROTECTED_SECONDS - monotonic()
            if left <= 0:
                self._reached[MAX_HANDSHAKES] += 1
                oldest.cancel(
                    f"cancelled in favour of a new handshake: {self._most} handshakes were in progress "
                    f"({MAX_HANDSHAKES})"
                )
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), left if left > 0 else _PROTECTED_SECONDS)

    def timeout_message(self, what: str) -> str:
        """Count a handshake that timed out, and return `what` followed by the limit."""
        self._cut_off[HANDSHAKE_SECONDS] += 1
        return f"{what} within {self.seconds:g} s ({HANDSHAKE_SECONDS})"

    def _end(self, handshake: asyncio.Task[None]) -> None:
        del self._began[handshake]
        self._ended.set()


def pending_handshakes_of(limits: Limits, reached: Counter[str], cut_off: Counter[str]) -> PendingHandshakes:
    """Create the configured limits on handshakes."""
    return PendingHandshakes(limits.max_handshakes, limits.handshake_timeout_seconds, reached, cut_off)
