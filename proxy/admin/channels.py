"""How the admin endpoint reads and writes a connection: plain, or with TLS.

The TLS channel keeps the socket non-blocking and its own (`ssl.MemoryBIO`), because the endpoint counts and closes
sockets itself.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

_READ_BYTES = 16 << 10

_T = TypeVar("_T")


class Channel(Protocol):
    """One connection. Receiving and sending may wait at the same time."""

    async def receive(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none if the peer has ended."""
        ...

    async def send(self, data: bytes, /) -> None:
        """Send all of `data`."""
        ...

    async def end(self) -> None:
        """Send nothing more."""
        ...


class PlainChannel:
    """A socket without TLS."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._loop = asyncio.get_running_loop()

    async def receive(self, size: int) -> bytes:
        return await self._loop.sock_recv(self._socket, size)

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._socket, data)

    async def end(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)


class TlsChannel:
    """A socket with TLS, as the server. The handshake takes place with the first read. Raises ssl.SSLError."""

    def __init__(self, connection: socket.socket, context: ssl.SSLContext) -> None:
        self._socket = connection
        self._loop = asyncio.get_running_loop()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._sending = asyncio.Lock()

    async def receive(self, size: int) -> bytes:
        try:
            return await self._done(lambda: self._tls.read(size))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    async def send(self, data: bytes) -> None:
        await self._done(lambda: self._tls.write(data))

    async def end(self) -> None:
        with suppress(ssl.SSLError):  # the peer's own close_notify is not awaited
            self._tls.unwrap()
        await self._flush()
        self._socket.shutdown(socket.SHUT_WR)

    async def _done(self, operation: Callable[[], _T]) -> _T:
        """Return the result of an operation, after as many reads as it needs."""
        while True:
            try:
                result = operation()
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._loop.sock_recv(self._socket, _READ_BYTES)
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            else:
                await self._flush()
                return result

    async def _flush(self) -> None:
        async with self._sending:
            if data := self._outgoing.read():
                await self._loop.sock_sendall(self._socket, data)
