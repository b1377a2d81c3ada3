"""TLS handshakes over a socket that is connected: with a client that has come, and with a broker.

TLS 1.2 and 1.3 (RFC 5246, 8446), as `sluicegate.proxy.network.tls.contexts` allows them. Not by the event loop's own
TLS: a peer that is rejected is told why, and what comes behind goes through `sluicegate.proxy.network.tls.socket`.
"""

import asyncio
import socket
import ssl
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from sluicegate.config.limits import Limits

# More than most handshakes bring at once; whatever stands behind one is the connection's.
_PIECE_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Handshake:
    """One that is done. What comes from the peer goes through `incoming`, what is for it through `outgoing`."""

    tls: ssl.SSLObject
    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO


async def with_client(plain: socket.socket, context: ssl.SSLContext) -> Handshake:
    """Raises ssl.SSLError, and OSError: ConnectionResetError where the client closes instead."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    return await _shaken(plain, Handshake(tls, incoming, outgoing))


async def with_broker(plain: socket.socket, context: ssl.SSLContext, host: str) -> Handshake:
    """`host`: the name that was asked for, which is the broker's certificate to have. Raises as `with_client`."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=host)
    return await _shaken(plain, Handshake(tls, incoming, outgoing))


async def _shaken(plain: socket.socket, begun: Handshake) -> Handshake:
    loop = asyncio.get_running_loop()
    while True:
        try:
            begun.tls.do_handshake()
        except ssl.SSLWantReadError:
            await _send(plain, begun)
        except ssl.SSLError:
            with suppress(OSError):  # it may have gone
                await _send(plain, begun)
            raise
        else:
            await _send(plain, begun)
            return begun
        piece = await loop.sock_recv(plain, _PIECE_BYTES)
        if not piece:
            raise ConnectionResetError
        begun.incoming.write(piece)


async def _send(plain: socket.socket, begun: Handshake) -> None:
    if begun.outgoing.pending:
        await asyncio.get_running_loop().sock_sendall(plain, begun.outgoing.read())


MAX_HANDSHAKES = "limits.max_handshakes"
HANDSHAKE_SECONDS = "limits.handshake_seconds"

# A handshake that was given this long makes room for a new one where there is none left.
_UNDISTURBED_SECONDS = 1.0


class Handshakes:
    """Tasks that end by themselves in time, the oldest first. `seconds`: how long each may take."""

    def __init__(self, most: int, seconds: float, reached: Counter[str], cut_off: Counter[str]) -> None:
        """`reached` counts those that are given up for others, `cut_off` those that took too long, by key."""
        self.seconds = seconds
        self._most = most
        self._reached = reached
        self._cut_off = cut_off
        self._began: dict[asyncio.Task[None], float] = {}
        self._ended = asyncio.Event()

    def __len__(self) -> int:
        return len(self._began)

    def add(self, handshake: asyncio.Task[None]) -> None:
        """One more is under way."""
        self._began[handshake] = monotonic()
        handshake.add_done_callback(self._end)

    async def until_there_is_room(self) -> None:
        """Wait for one to end, or end the oldest, but none that has only begun: in a rush, all would be."""
        while len(self._began) >= self._most:
            self._ended.clear()
            oldest, began = next(iter(self._began.items()))
            left = began + _UNDISTURBED_SECONDS - monotonic()
            if left <= 0:
                self._reached[MAX_HANDSHAKES] += 1
                oldest.cancel(f"given up for a new one: {self._most} handshakes were under way ({MAX_HANDSHAKES})")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), left if left > 0 else _UNDISTURBED_SECONDS)

    def took_too_long(self, what: str) -> str:
        """Count one, and say so in words; `what` did not come."""
        self._cut_off[HANDSHAKE_SECONDS] += 1
        return f"{what} within {self.seconds:g} s ({HANDSHAKE_SECONDS})"

    def _end(self, handshake: asyncio.Task[None]) -> None:
        del self._began[handshake]
        self._ended.set()


def handshakes_of(limits: Limits, reached: Counter[str], cut_off: Counter[str]) -> Handshakes:
    """As they are configured."""
    return Handshakes(limits.max_handshakes, limits.handshake_seconds, reached, cut_off)
