"""TLS handshakes over a socket that is connected: with a client that has come, and with a broker.

TLS 1.2 and 1.3 (RFC 5246, 8446), as `sluicegate.proxy.network.tls.contexts` allows them. Not by the event loop's own
TLS: a peer that is rejected is told why, and what comes behind goes through `sluicegate.proxy.network.tls.socket`.
"""

import asyncio
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass

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
